"""The plan of the real runs of AdapterFusion."""

from benchmarks import fusion

PLAN = fusion.plan()


def test_members_come_before_the_fusions_that_need_them():
    for number, run in enumerate(PLAN):
        if run.method != fusion.MEMBER:
            assert set(fusion.member_runs(run)) <= set(PLAN[:number])


def test_every_run_has_a_folder_of_its_own():
    assert len({fusion.run_folder(run) for run in PLAN}) == len(PLAN) == len(set(PLAN))


def test_whom_a_fusion_listens_to():
    members = fusion.member_runs(fusion.Run("rte", fusion.FUSION, 2))
    others = fusion.member_runs(fusion.Run("rte", fusion.OTHERS, 2))
    assert [(run.task, run.seed) for run in members] == [
        *(("rte", 2), ("mrpc", 2), ("sts-b", 0), ("cola", 0), ("mnli", 0), ("qqp", 0))
    ]
    assert others == members[1:]
    command = fusion.command(fusion.Run("rte", fusion.OTHERS, 2))
    assert "--fuse=mrpc=WORK/mrpc_pfeiffer_2/adapter,sts-b=" in " ".join(command)
