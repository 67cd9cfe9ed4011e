# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir


class PenstockConan(ConanFile):
    name = "penstock"
    version = "0.1.0"
    description = "Composable data pipelines that keep an accelerator fed"
    license = "Apache-2.0 WITH LLVM-exception"
    topics = ("data-loading", "machine-learning", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {f"with_{name}": [True, False] for name in ("zstd", "gzip", "zlib", "lz4", "bz2", "xz", "json")}
    default_options = {f"with_{name}": False for name in ("zstd", "gzip", "zlib", "lz4", "bz2", "xz", "json")}
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*"
    no_copy_source = True

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        if self.options.with_zstd:
            self.requires("zstd/[>=1.4 <2]", transitive_headers=True)
        if self.options.with_gzip:
            self.requires("libdeflate/[>=1.10 <2]", transitive_headers=True)
        if self.options.with_zlib:
            self.requires("zlib/[>=1.2.11 <2]", transitive_headers=True)
        if self.options.with_lz4:
            self.requires("lz4/[>=1.9.2 <2]", transitive_headers=True)
        if self.options.with_bz2:
            self.requires("bzip2/[>=1.0.8 <2]", transitive_headers=True)
        if self.options.with_xz:
            self.requires("xz_utils/[>=5.2 <6]", transitive_headers=True)
        if self.options.with_json:
            self.requires("nlohmann_json/[>=3.9 <4]", transitive_headers=True)

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        self.info.clear()  # the options add requirements; the headers are the same

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for name in ("zstd", "gzip", "zlib", "lz4", "bz2", "xz", "json"):
            enabled = bool(self.options.get_safe(f"with_{name}"))
            toolchain.cache_variables[f"PENSTOCK_ENABLE_{name.upper()}"] = enabled
        for part in ("TESTS", "EXAMPLES", "BENCH", "FUZZ"):
            toolchain.cache_variables[f"PENSTOCK_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        copy(self, "LICENSE", self.source_folder, f"{self.package_folder}/licenses")
        # Not what was enabled but all headers: with package_id cleared, one package serves every option.
        copy(self, "*.hpp", f"{self.source_folder}/include", f"{self.package_folder}/include")
        rmdir(self, f"{self.package_folder}/share")

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "penstock")
        self.cpp_info.set_property("cmake_target_name", "penstock::penstock")
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self._component("core", [])
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            self.cpp_info.components["core"].system_libs = ["pthread"]
        if self.options.with_zstd:
            self._component("zstd", ["core", "zstd::zstd"])
        if self.options.with_gzip:
            self._component("gzip", ["core", "libdeflate::libdeflate"])
        if self.options.with_zlib:
            self._component("zlib", ["core", "zlib::zlib"])
        if self.options.with_lz4:
            self._component("lz4", ["core", "lz4::lz4"])
        if self.options.with_bz2:
            self._component("bz2", ["core", "bzip2::bzip2"])
        if self.options.with_xz:
            self._component("xz", ["core", "xz_utils::xz_utils"])
        if self.options.with_json:
            self._component("json", ["core", "nlohmann_json::nlohmann_json"])

    def _component(self, name, requires):
        component = self.cpp_info.components[name]
        component.set_property("cmake_target_name", f"penstock::{name}")
        component.requires = requires
        component.bindirs = []
        component.libdirs = []
