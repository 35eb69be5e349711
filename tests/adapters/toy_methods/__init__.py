"""Methods that exist in the tests only; each is one file, as a method of the package is."""

from tests.adapters.toy_methods.hypernetwork import ToyHypernetwork as ToyHypernetwork
from tests.adapters.toy_methods.low_rank import ToyLowRank as ToyLowRank
from tests.adapters.toy_methods.mixture import ToyMixture as ToyMixture
from tests.adapters.toy_methods.prefix import ToyPrefix as ToyPrefix
from tests.adapters.toy_methods.rescaling import ToyRescaling as ToyRescaling
