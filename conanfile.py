# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir

# The next three are made by tools/check_components.py --write, from cmake/penstock_component_table.cmake.
# component: what it needs, each as a package, its versions, and the libraries of the system where [platform_requires]
# names the package. None: there is no package, the libraries are the system's.
COMPONENTS = {
    "zstd": [("zstd", "[>=1.4 <2]", ["zstd"])],
    "gzip": [("libdeflate", "[>=1.10 <2]", ["deflate"])],
    "zlib": [("zlib", "[>=1.2.11 <2]", ["z"])],
    "lz4": [("lz4", "[>=1.9.2 <2]", ["lz4"])],
    "bz2": [("bzip2", "[>=1.0.8 <2]", ["bz2"])],
    "xz": [("xz_utils", "[>=5.2 <6]", ["lzma"])],
    "brotli": [("brotli", "[>=1.0.9 <2]", ["brotlidec"])],
    "snappy": [("snappy", "[>=1.1.9 <2]", ["snappy"])],
    "json": [("nlohmann_json", "[>=3.9 <4]", [])],
    "simdjson": [("simdjson", "[>=3 <5]", ["simdjson"])],
    "yaml": [("libyaml", "[>=0.2.5 <1]", ["yaml"])],
    "jpeg": [("libjpeg-turbo", "[>=2.1 <4]", ["jpeg"])],
    "png": [("libspng", "[>=0.7 <1]", ["spng"])],
    "webp": [("libwebp", "[>=1.2 <2]", ["webp"])],
    "gif": [("giflib", "[>=5.1 <6]", ["gif"])],
    "avif": [("libavif", "[>=0.11 <2]", ["avif"])],
    "tiff": [("libtiff", "[>=4.5 <5]", ["tiff"])],
    "utf8proc": [("utf8proc", "[>=2.2 <3]", ["utf8proc"])],
    "audio": [("libsndfile", "[>=1.1 <2]", ["sndfile"])],
    "resample": [("soxr", "[>=0.1.3 <1]", ["soxr"])],
    "video": [("ffmpeg", "[>=4.4 <9]", ["avformat", "avcodec", "swscale", "avutil"])],
    "pcre2": [("pcre2", "[>=10.30 <11]", ["pcre2-8"])],
    "sentencepiece": [(None, None, ["sentencepiece"])],
    "tfrecord": [("isa-l", "[>=2.30 <3]", ["isal"])],
    "cache": [("xxhash", "[>=0.8.1 <1]", ["xxhash"])],
    "fmt": [("fmt", "[>=9.1 <13]", ["fmt"])],
    "range_v3": [("range-v3", "[>=0.12 <1]", [])],
    "asio": [("asio", "[>=1.22 <2]", [])],
    "lockfree": [("boost", "[>=1.74 <2]", [])],
    "mpi": [("openmpi", "[>=4.1 <6]", ["mpi"])],
    "uring": [("liburing", "[>=2.0 <3]", ["uring"])],
    "http": [("boost", "[>=1.74 <2]", []), ("openssl", "[>=1.1.1 <4]", ["ssl", "crypto"])],
    "s3": [("pugixml", "[>=1.11 <2]", ["pugixml"]),
           ("openssl", "[>=1.1.1 <4]", ["crypto"]),
           ("nlohmann_json", "[>=3.9 <4]", [])],
    "crypto": [("openssl", "[>=3 <4]", ["crypto"])],
    "arrow": [("arrow", "[>=15]", ["arrow", "parquet"])],
    "libtorch": [("libtorch", "[>=1.13 <3]", ["torch", "torch_cpu", "c10"])],
    "cuda": [(None, None, ["cudart"])],
    "nvjpeg": [(None, None, ["nvjpeg"])],
    "cufile": [(None, None, ["cufile"])],
}

# Components that need others.
NEEDS = {
    "pcre2": ["json", "utf8proc"],
    "s3": ["http"],
    "arrow": ["json"],
    "nvjpeg": ["cuda", "jpeg"],
    "cufile": ["cuda"],
}

# What the headers of a component's library must be told.
DEFINES = {
    "asio": ["ASIO_HAS_CO_AWAIT=1", "ASIO_HAS_STD_COROUTINE=1"],
    "mpi": ["OMPI_SKIP_MPICXX", "MPICH_SKIP_MPICXX"],
}

# Every option; `with_compiled` makes a library of what needs no template.
OPTIONS = ("compiled", *COMPONENTS)


class PenstockConan(ConanFile):
    name = "penstock"
    version = "0.1.0"
    description = "Composable data pipelines that keep an accelerator fed"
    license = "Apache-2.0 WITH LLVM-exception"
    topics = ("data-loading", "machine-learning", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {f"with_{name}": [True, False] for name in OPTIONS}
    default_options = {f"with_{name}": False for name in OPTIONS}
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*"
    no_copy_source = True
    test_package_folder = "tests/test_package"

    def configure(self):
        if self.options.with_compiled:
            self.package_type = "static-library"

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        wanted = {}
        for name, needed in COMPONENTS.items():
            if self._wanted(name):
                for package, versions, _ in needed:
                    wanted[package] = versions
        for package, versions in wanted.items():
            if package:
                self.requires(f"{package}/{versions}", transitive_headers=True)

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.get_safe("os") == "Windows":
            raise ConanInvalidConfiguration("penstock needs a POSIX system")

    def package_id(self):
        # The other options add requirements; headers and library are the same.
        if self.info.options.with_compiled:
            self.info.requires.clear()
            for name in COMPONENTS:
                self.info.options.rm_safe(f"with_{name}")
        else:
            self.info.clear()

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for name in OPTIONS:
            enabled = bool(self.options.get_safe(f"with_{name}"))
            toolchain.cache_variables[f"PENSTOCK_ENABLE_{name.upper()}"] = enabled
        for part in ("TESTS", "EXAMPLES", "BENCH", "FUZZ"):
            toolchain.cache_variables[f"PENSTOCK_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        if self.options.with_compiled:
            cmake.build(target="penstock_compiled")

    def package(self):
        copy(self, "LICENSE", self.source_folder, f"{self.package_folder}/licenses")
        # Not what was enabled but all headers: with package_id cleared, one package serves every option.
        for kind in ("*.hpp", "*.ipp"):
            copy(self, kind, f"{self.source_folder}/include", f"{self.package_folder}/include")
        copy(self, "*.a", self.build_folder, f"{self.package_folder}/lib", keep_path=False)
        rmdir(self, f"{self.package_folder}/share")

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "penstock")
        self.cpp_info.set_property("cmake_target_name", "penstock::penstock")
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self._component("core", [])
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            self.cpp_info.components["core"].system_libs = ["pthread"]
        if self.options.get_safe("with_compiled"):
            self._component("compiled", ["core"])
            self.cpp_info.components["compiled"].libs = ["penstock"]
            self.cpp_info.components["compiled"].libdirs = ["lib"]
            self.cpp_info.components["compiled"].defines = ["PENSTOCK_COMPILED"]
            # Its functions are in sections of their own; see penstock_compiled_library in cmake/.
            if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
                for flags in ("exelinkflags", "sharedlinkflags"):
                    setattr(self.cpp_info.components["compiled"], flags, ["-Wl,--gc-sections"])
        packages = {dependency.ref.name for dependency in self.dependencies.host.values()}
        for name, needed in COMPONENTS.items():
            if not self._wanted(name):
                continue
            self._component(name, ["core", *NEEDS.get(name, [])])
            for package, _, libraries in needed:
                if package in packages:
                    self.cpp_info.components[name].requires.append(f"{package}::{package}")
                else:
                    self.cpp_info.components[name].system_libs.extend(libraries)

    def _wanted(self, name):
        users = [name, *(other for other, needed in NEEDS.items() if name in needed)]
        return any(self.options.get_safe(f"with_{user}") for user in users)

    def _component(self, name, requires):
        component = self.cpp_info.components[name]
        component.set_property("cmake_target_name", f"penstock::{name}")
        component.requires = requires
        component.defines = DEFINES.get(name, [])
        component.bindirs = []
        component.libdirs = []
