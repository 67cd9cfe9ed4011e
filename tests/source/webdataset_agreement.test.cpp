// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/webdataset.hpp>

#include "support/catch.hpp"
#include "support/external_program.hpp"
#include "support/raw_tar.hpp"
#include "support/stored.hpp"
#include "support/tar_cases.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

#include <penstock/codec/unpack_bzip2.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_xz.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/webdataset_stream.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

// For each path in a list, writes the samples that WebDataset's Python package yields to `<path>.expected`,
// with a last line `error` if it raises.
constexpr const char* reader_in_python = R"py(import resource, sys, webdataset
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # sparse files can be of any size
for path in open(sys.argv[1]).read().splitlines():
    out = open(path.split("\t")[1], "wb")
    try:
        for sample in webdataset.WebDataset([path.split("\t")[0]], shardshuffle=False, empty_check=False):
            out.write(b"sample %s\n" % sample["__key__"].encode("utf-8", "surrogateescape"))
            for name, value in sample.items():
                if name in ("__key__", "__url__", "__local_path__"):
                    continue
                out.write(b"%s %d " % (name.encode("utf-8", "surrogateescape"), len(value)) + value + b"\n")
    except Exception as problem:
        out.write(b"error")
    out.close()
)py";

// Shards of other writers: WebDataset's TarWriter, whose members have pax headers for the modification time
// unless it is given; Python's tarfile in its formats; and two folders for GNU tar.
constexpr const char* writers_in_python = R"py(import io, os, random, sys, tarfile, webdataset
folder = sys.argv[1]
random.seed(7)
def content(i):
    return {"bin": random.randbytes(random.choice((0, 1, 511, 512, 513, 1500))), "cls": b"%d" % i,
            "Left.JPG": random.randbytes(i)}
for name, choices in (("wds.tar", {}), ("wds-time.tar", {"mtime": 1}), ("wds.tar.gz", {}),
                      ("wds.tar.bz2", {}), ("wds.tar.xz", {})):
    with webdataset.TarWriter(os.path.join(folder, name), encoder=False, **choices) as out:
        for i in range(60):
            out.write({"__key__": "d.%d/%s%06d" % (i // 20, "k" * (i * 5), i), **content(i)})
names = ["a/%s%d" % ("n" * (i * 6), i) for i in range(60)]
names += ["caf\u00e9/\u6f22%d" % i for i in range(9)]
for kind in ("USTAR", "GNU", "PAX"):
    dialect = getattr(tarfile, kind + "_FORMAT")
    with tarfile.open(os.path.join(folder, kind + ".tar"), "w", format=dialect) as out:
        for i, name in enumerate(names):
            if kind == "USTAR" and len(name) > 90:
                continue
            for suffix, value in content(i).items():
                info = tarfile.TarInfo(name + "." + suffix)
                info.size, info.mtime = len(value), 1.5 + i
                out.addfile(info, io.BytesIO(value))
for kind, longest in (("short", 60), ("long", 140)):
    for i in range(60):
        below = os.path.join(folder, kind, "d%d" % (i // 20), "x" * (i % 3 * longest // 3))
        os.makedirs(below, exist_ok=True)
        for suffix, value in content(i).items():
            name = "k" * (i % 4 * longest // 12) + "%d.%s" % (i, suffix)
            with open(os.path.join(below, name), "wb") as out:
                out.write(value)
)py";

/// The Python that has the package, if there is one.
std::optional<std::string> python_with_webdataset() {
  std::string python = penstock_test::peer_python();
  if (!penstock_test::have_program("Python's webdataset", python + " -c 'import webdataset'"))
    return std::nullopt;
  return python;
}

template <class Sample>
void write_sample(std::string& out, const Sample& s) {
  out.append("sample ").append(s.key()).append("\n");
  for (std::size_t m = 0; m < s.size(); ++m) {
    const auto bytes = s.member(m).finish();
    out.append(s.name(m)).append(" ").append(std::to_string(bytes.size())).append(" ");
    out.append(penstock::text_of(bytes)).append("\n");
  }
}

/// The samples that Penstock reads, and whether they ended with an error.
struct outcome {
  std::string text;
  std::string problem;
};

outcome read_forward(const std::string& path) {
  outcome found;
  try {
    auto reader =
        penstock::webdataset_stream<penstock::unpack_gzip, penstock::unpack_bzip2, penstock::unpack_xz>(
            std::vector<std::string>{path})
            .connect();
    penstock::webdataset_stream_source<>::element sample;
    while (reader.next(sample)) write_sample(found.text, sample);
  } catch (const penstock::error& e) {
    found.problem = e.message();
  }
  // every kind of store gives the same
  penstock_test::in_each_store({path}, [&](const std::string& kind, const penstock_test::stored& where) {
    outcome stored;
    try {
      const auto source =
          penstock::webdataset_stream<penstock::unpack_gzip, penstock::unpack_bzip2, penstock::unpack_xz>(
              where);
      auto reader = source.connect();
      penstock::webdataset_stream_source<>::element sample;
      while (reader.next(sample)) write_sample(stored.text, sample);
    } catch (const penstock::error& e) {
      stored.problem = e.message();
    }
    INFO(kind << " " << path);
    CHECK((stored.text == found.text));
    CHECK(stored.problem == found.problem);
  });
  return found;
}

template <class Storage>
outcome read_indexed_in(const Storage& where) {
  outcome found;
  try {
    const penstock::webdataset data(where, {.index = penstock::index_policy::transient});
    const auto reader = data.connect();
    typename std::remove_cvref_t<decltype(reader)>::worker worker;
    for (std::uint64_t i = 0; i < data.size(); ++i)
      reader.evaluate({0, i}, worker, [&](const auto& s) { write_sample(found.text, s); });
  } catch (const penstock::error& e) {
    found.problem = e.message();
  }
  return found;
}
outcome read_indexed(const std::string& path) {
  outcome found = read_indexed_in(penstock::file(std::vector<std::string>{path}));
  penstock_test::in_each_store({path}, [&](const std::string& kind, const penstock_test::stored& where) {
    const outcome stored = read_indexed_in(where);
    INFO(kind << " " << path);
    CHECK((stored.text == found.text));
    CHECK(stored.problem == found.problem);
  });
  return found;
}

/// The samples that Python yields for each of the files.
std::vector<std::string> read_by_python(const std::string& python, const std::vector<std::string>& paths) {
  const penstock_test::temp_dir dir;
  std::ofstream(dir / "read.py") << reader_in_python;
  std::ofstream list(dir / "list");
  for (std::size_t i = 0; i < paths.size(); ++i)
    list << paths[i] << "\t" << (dir / std::to_string(i)).string() << "\n";
  list.close();
  const auto ran =
      penstock_test::run_program(python + " " + (dir / "read.py").string() + " " + (dir / "list").string());
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::ifstream in(dir / std::to_string(i), std::ios::binary);
    found.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return found;
}

}  // namespace

TEST_CASE("source/webdataset_agreement: samples of made-up shards match Python's webdataset") {
  const auto python = python_with_webdataset();
  if (!python) return;
  const penstock_test::temp_dir dir;
  std::vector<std::string> paths, names;
  const auto add = [&](const std::string& name, const std::string& bytes) {
    names.push_back(name);
    paths.push_back((dir / (std::to_string(paths.size()) + ".tar")).string());
    std::ofstream(paths.back(), std::ios::binary) << bytes;
  };
  for (const auto& one : penstock_test::good_tar_cases()) {
    if (one.python.empty()) add(one.name, one.bytes);
  }
  penstock::rng random(5, 0, 0);
  penstock_test::raw_tar mixed;
  for (int i = 0; i < 300; ++i) {
    std::string content(static_cast<std::size_t>(random.below(5000)), '\0');
    for (char& c : content) c = static_cast<char>(random.below(256));
    const char* const endings[3][3] = {
        {".jpg", ".CLS", ".seg.png"}, {"", ".json", ".hidden."}, {"/x.txt", "_.txt", "/.b"}};
    mixed.member(
        "d" + std::to_string(i / 50) + "/k" + std::to_string(i / 3) + endings[i % 3][random.below(3)],
        content);
  }
  add("mixed", mixed.end(18).bytes);
  const auto expected = read_by_python(*python, paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    INFO(names[i]);
    CHECK(read_indexed(paths[i]).text == expected[i]);
    CHECK(read_forward(paths[i]).text == expected[i]);
  }
}

TEST_CASE("source/webdataset_agreement: shards of WebDataset's own writer, Python's tarfile and GNU tar") {
  const auto python = python_with_webdataset();
  if (!python) return;
  const penstock_test::temp_dir dir;
  std::ofstream(dir / "write.py") << writers_in_python;
  const auto wrote =
      penstock_test::run_program(*python + " " + (dir / "write.py").string() + " " + dir.path().string());
  INFO(wrote.output);
  REQUIRE(wrote.status == 0);
  if (penstock_test::have_program("tar", "tar --version | grep GNU")) {
    for (const char* const format : {"v7", "oldgnu", "gnu", "ustar", "posix"}) {
      const bool short_names = std::string_view(format) == "v7" || std::string_view(format) == "ustar";
      const std::string path = (dir / (std::string("tar-") + format + ".tar")).string();
      REQUIRE(penstock_test::run_program("tar --sort=name --format=" + std::string(format) + " -C " +
                                         (dir / (short_names ? "short" : "long")).string() + " -cf " + path +
                                         " .")
                  .status == 0);
    }
  }
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(dir.path()))
    if (entry.path().filename().string().find(".tar") != std::string::npos)
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  CHECK(paths.size() >= 4 + 3 + 3);
  const auto expected = read_by_python(*python, paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    INFO(paths[i]);
    CHECK(expected[i].size() > 10'000);
    CHECK_FALSE(expected[i].ends_with("error"));
    CHECK((read_forward(paths[i]).text == expected[i]));
    if (paths[i].ends_with(".tar")) CHECK((read_indexed(paths[i]).text == expected[i]));
  }
}

TEST_CASE("source/webdataset_agreement: samples of real archives match Python's webdataset") {
  const auto root = penstock_test::test_data("tar");
  if (!root) {
    WARN("PENSTOCK_TEST_DATA is not set: real tar archives are not compared");
    return;
  }
  const auto python = python_with_webdataset();
  if (!python) return;
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(*root))
    if (entry.is_regular_file() && entry.path().extension() != ".md") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  const auto expected = read_by_python(*python, paths);
  int same = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    INFO(paths[i]);
    const outcome forward = read_forward(paths[i]), indexed = read_indexed(paths[i]);
    INFO(forward.problem);
    if (indexed.problem.empty()) CHECK(indexed.text == forward.text);
    if (expected[i].ends_with("error")) continue;  // Penstock may read archives that tarfile cannot
    if (!forward.problem.empty()) {
      // tarfile ends silently at a later header that is wrong; the samples before it are equal
      CHECK(expected[i].starts_with(forward.text));
    } else {
      ++same;
      CHECK(forward.text == expected[i]);
    }
  }
  CHECK(same > 30);
}
