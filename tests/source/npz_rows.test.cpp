// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/npz_rows.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/external_program.hpp"
#include "support/noting_storage.hpp"
#include "support/temp_dir.hpp"
#include "support/zip_writer.hpp"

#include <penstock/codec/layouts/zip_archive.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;

static_assert(ps::indexed_source<ps::npz_row_source<float, ps::mapped_file>>);
using codec_test::caught;
using penstock_test::contains;
using penstock_test::zip_writer;

namespace npz_rows_test {

/// An npy file of the numbers from `first`.
template <class T>
std::string array(const ps::extents& shape, int first = 0) {
  std::vector<T> values;
  for (std::uint64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<T>(first + static_cast<int>(i)));
  const auto bytes = ps::npy_bytes<T>(shape, values);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
ps::memory_files held(const std::string& text) {
  return ps::memory_files().add("x.npz", codec_test::to_vector(std::string_view(text)));
}
codec_test::thrown refusal(const std::string& text, std::string_view name = "a") {
  return caught([&] { static_cast<void>(ps::npz_rows<float>(held(text), name)); });
}
template <class Source>
auto values_of(const Source& source) {
  return penstock_test::values_of(source | ps::batch(1));
}
std::vector<float> counting(int count, int first = 0) {
  std::vector<float> all;
  for (int i = 0; i < count; ++i) all.push_back(static_cast<float>(first + i));
  return all;
}
/// A storage that cannot read the first member's bytes.
struct worn_storage {
  ps::memory_files files;

  struct session : ps::memory_files::session {
    static constexpr ps::session_traits traits = {};  // shows nothing in place
    explicit session(ps::memory_files::session good) : ps::memory_files::session(std::move(good)) {}
    void read(ps::object_id id, std::uint64_t offset, ps::mutable_bytes into) const {
      if (offset == 35) throw ps::error(ps::errc::io, "worn out").in_file("disk.npz").at_offset(offset);
      ps::memory_files::session::read(id, offset, into);
    }
  };
  [[nodiscard]] decltype(auto) names() const { return files.names(); }
  [[nodiscard]] session connect() const { return session(files.connect()); }
};

std::string written(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

/// Names of members may lie in the archive, so there must be one that stays.
template <class Archive>
concept lists_members = requires(Archive&& archive) { static_cast<Archive&&>(archive).all(); };
static_assert(lists_members<ps::detail::zip_archive&> && !lists_members<ps::detail::zip_archive>);

}  // namespace npz_rows_test

TEST_CASE("source/npz_rows: the names of an archive's arrays, where its bytes are copied") {
  using namespace npz_rows_test;
  const std::string long_name(100, 'n');
  const ps::memory_files all =
      held(zip_writer()
               .add({.name = long_name + ".npy", .bytes = array<float>(ps::extents(1))})
               .add({.name = "b", .bytes = array<float>(ps::extents(2))})
               .text());
  const worn_storage::session copies(all.connect());
  const ps::session_view there(copies);
  CHECK(ps::detail::zip_arrays(there, 0, there.size(0)) == std::vector<std::string>{long_name, "b"});
}

TEST_CASE("source/npz_rows: rows of an array by its name, from any storage") {
  using namespace npz_rows_test;
  const penstock_test::temp_dir dir;
  const auto archive = [](int first) {
    return zip_writer()
        .add("y.npy", array<std::int64_t>(ps::extents(4)))
        .add("x.npy", array<float>(ps::extents(4, 3), first))
        .text();
  };
  written(dir / "0.npz", archive(0));
  written(dir / "1.npz", archive(12));
  const std::string pattern = (dir / "{0..1}.npz").string();
  const auto rows = ps::npz_rows<float>(pattern, "x");
  CHECK(rows.array() == "x");
  CHECK(rows.size() == 8);
  CHECK(rows.row() == ps::extents(3));
  CHECK(*rows.starts() == std::vector<std::uint64_t>{0, 4, 8});
  CHECK_THAT(rows.connect().key(5), contains("1.npz:1"));
  CHECK_THAT(rows.describe(), contains("npz_rows(2 files): 8 rows of (3,) 'f4'"));
  CHECK(values_of(rows) == counting(24));
  CHECK(values_of(ps::npz_rows<float>(ps::file(pattern), "x")) == counting(24));
  CHECK(values_of(ps::npz_rows<float>(held(archive(0)), "x")) == counting(12));
  CHECK(values_of(ps::npz_rows<float>(pattern, "x.npy")) == counting(24));
  const auto known = ps::npz_rows<float, 3>(pattern, "x");
  CHECK(penstock_test::values_of(known | ps::batch(8), 3) == counting(24));
  CHECK(penstock_test::values_of(known | ps::shuffle(ps::seed(2)) | ps::batch(3), 3) ==
        penstock_test::values_of(rows | ps::shuffle(ps::seed(2)) | ps::batch(3)));
  const auto labels = ps::npz_rows<std::int64_t>(pattern, "y");
  CHECK(values_of(labels) == std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 2, 3});

  // Another array with as many rows in these files is different data.
  CHECK(rows.fingerprint() == known.fingerprint());
  CHECK(rows.fingerprint() != labels.fingerprint());
  CHECK(rows.fingerprint() == ps::npz_rows<float>(ps::file(pattern), "x").fingerprint());
}

TEST_CASE("source/npz_rows: names with and without .npy are distinct, and any name is allowed") {
  using namespace npz_rows_test;
  const std::string text = zip_writer()
                               .add("a.npy", array<float>(ps::extents(2), 5))
                               .add("a", array<float>(ps::extents(2), 7))
                               .add("folder/\xc3\xbc.npy", array<float>(ps::extents(2), 9))
                               .text();
  CHECK(values_of(ps::npz_rows<float>(held(text), "a")) == counting(2, 7));
  CHECK(values_of(ps::npz_rows<float>(held(text), "a.npy")) == counting(2, 5));
  CHECK(values_of(ps::npz_rows<float>(held(text), "folder/\xc3\xbc")) == counting(2, 9));
  const auto missing = refusal(text, "b");
  CHECK(missing.code == ps::errc::missing);
  CHECK_THAT(missing.line, contains("no array 'b'; it has: a, a, folder/\xc3\xbc") && contains("x.npz"));
  CHECK_THAT(refusal(zip_writer().text()).line, contains("no array 'a'; it has none"));
  zip_writer many;
  for (int i = 0; i < 1'000; ++i) many.add(std::to_string(i) + ".npy", "");
  CHECK_THAT(refusal(many.text()).line, contains(", ...") && !contains("999"));
}

TEST_CASE("source/npz_rows: 64-bit sizes, other fields and comments are read") {
  using namespace npz_rows_test;
  for (const bool wide : {false, true})
    for (const bool wide_end : {false, true})
      for (const std::string& comment : {std::string(), std::string("a PK\5\6 comment"),
                                         std::string(65'535, 'x'), "PK\5\6" + std::string(18, '\0') + "!"}) {
        CAPTURE(wide, wide_end, comment.size());
        zip_writer zip;
        zip.comment = comment;
        zip.wide_end = wide_end;
        zip.add("other.npy", array<float>(ps::extents(1)));
        zip.add({.name = "a.npy",
                 .bytes = array<float>(ps::extents(4, 2)),
                 .wide = wide,
                 .local_extra = std::string("\x0a\x00\x04\x00time", 8),
                 .extra = std::string("\x75\x70\x02\x00\x01\x02", 6)});
        CHECK(values_of(ps::npz_rows<float>(held(zip.text()), "a")) == counting(8));
      }
}

TEST_CASE("source/npz_rows: unsupported archives are refused with what to do") {
  using namespace npz_rows_test;
  const std::string good = array<float>(ps::extents(4, 2));
  const auto check = [](const std::string& text, const std::string& part, ps::errc code = ps::errc::format) {
    CAPTURE(part);
    const auto e = refusal(text);
    CHECK(e.code == code);
    CHECK_THAT(e.line, contains(part) && contains("file x.npz") && contains("offset"));
  };
  const auto one = [&](zip_writer::member m) {
    m.name = "a.npy";
    if (m.bytes.empty()) m.bytes = good;
    return zip_writer().add(std::move(m)).text();
  };
  check(one({.method = 8}), "npz_rows<T>(unpacked_npz(...), name)");
  check(one({.flags = 1}), "without a password");
  check(one({.local_name = "b.npy"}), "entry for 'a.npy' does not match byte 0");
  check(one({.local_name = "longer.npy"}), "does not match byte 0");
  check(one({.more = 1}), "does not match byte 0");
  check(one({.wide = true, .more = std::uint64_t{1} << 62}), "does not match byte 0");
  check(one({.extra = std::string("\x01\x00\xff\x00", 4)}), "is damaged here");
  check(one({.bytes = array<std::int32_t>(ps::extents(4))}), "i4', but 'f4' was asked for");
  check(one({.bytes = good.substr(0, good.size() - 1)}), "copy the file again if it was cut, at byte 128 of");
  check(one({.bytes = "text"}), "is not an npy file");
  check(zip_writer().add("a.npy", good).add("a.npy", good).text(), "appears twice");
  zip_writer behind;
  behind.prefix = "#!/bin/sh\n";
  check(behind.add("a.npy", good).text(), "not just before its end record");
  behind.wide_end = true;
  check(behind.text(), "64-bit end record is not where its locator says");
  check("", "not a zip archive: it has no end record");
  check(good, "not a zip archive: it is a NumPy array");

  // Numbers of the end record.
  const std::string text = one({});
  const std::size_t end = text.size() - 22;
  const auto changed = [&](std::size_t at, std::uint64_t value, std::size_t bytes) {
    std::string other = text;
    return other.replace(end + at, bytes, zip_writer::little(value, bytes));
  };
  check(changed(4, 1, 2), "one of several parts");
  check(changed(10, 2, 2), "2 entries take");
  check(changed(10, 0, 2), "more bytes than its entries take");
  check(changed(12, 0xffffffff, 4), "not just before its end record");
  check(changed(16, 0xffffffff, 4), "not just before its end record");
  check(changed(20, 1, 2), "it has no end record");

  // a directory with no members before it
  const std::size_t begin = text.find("PK\1\2");
  std::string bare = text.substr(begin);
  bare.replace(bare.size() - 6, 4, zip_writer::little(0, 4));
  check(bare, "no room for a member before it");
}

TEST_CASE("source/npz_rows: an error of the storage keeps its place in the file") {
  using namespace npz_rows_test;
  const std::string text = zip_writer().add("a.npy", array<float>(ps::extents(4, 2))).text();
  const auto e = caught([&] { static_cast<void>(ps::npz_rows<float>(worn_storage{held(text)}, "a")); });
  CHECK(e.code == ps::errc::io);
  CHECK_THAT(e.line, contains("worn out") && contains("file disk.npz") && contains("offset 35") &&
                         !contains("of the array"));
}

TEST_CASE("source/npz_rows: an array that a plan does not use is neither opened nor read nor compared") {
  using namespace npz_rows_test;
  const std::string text = zip_writer()
                               .add("x.npy", array<float>(ps::extents(20, 3)))
                               .add("y.npy", array<std::int64_t>(ps::extents(20)))
                               .text();
  const penstock_test::noting_storage for_x{held(text)}, for_y{held(text)};
  const auto both =
      ps::zip<"x", "y">(ps::npz_rows<float, 3>(for_x, "x"), ps::npz_rows<std::int64_t>(for_y, "y"));
  const auto x_of = [](const auto& plan) {
    std::vector<float> all;
    for (auto&& b : (plan | ps::prefetch(4) | ps::batch(6) | ps::workers(0)).epoch(0)) {
      const auto values = ps::get<"x">(b).values();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const auto asked = [](const penstock_test::noting_storage& where) {
    const std::uint64_t all = where.notes->reads.size() + where.notes->hints.size() + where.notes->versions;
    where.notes->clear();
    return all;
  };
  CHECK((asked(for_x) != 0 && asked(for_y) != 0));  // making the plan reads both
  CHECK(x_of(both | ps::fields<"x">) == counting(60));
  CHECK((asked(for_x) != 0 && asked(for_y) == 0));
  const auto some = x_of(both | ps::shuffle(ps::seed(4)) | ps::fields<"x">);
  CHECK((asked(for_x) != 0 && asked(for_y) == 0));
  CHECK(x_of(both | ps::shuffle(ps::seed(4))) == some);
  CHECK((asked(for_x) != 0 && asked(for_y) != 0));

  // A broken array does harm only if it is used.
  for_y.notes->worn_end = text.size();
  CHECK(x_of(both | ps::fields<"x">) == counting(60));
  CHECK_THAT(penstock_test::error_of([&] { x_of(both); }), contains("worn out") && contains("x.npz"));
}

TEST_CASE("source/npz_rows: an unused file may disappear once the plan is made") {
  using namespace npz_rows_test;
  const penstock_test::temp_dir dir;
  const auto x = written(dir / "x.npz", zip_writer().add("a.npy", array<float>(ps::extents(4))).text());
  const auto y = written(dir / "y.npz", zip_writer().add("a.npy", array<float>(ps::extents(4), 9)).text());
  const auto both = ps::zip<"x", "y">(ps::npz_rows<float>(x, "a"), ps::npz_rows<float>(ps::file(y), "a"));
  const auto sum = [](const auto& plan) {
    float all = 0;
    for (auto&& b : (plan | ps::batch(2) | ps::workers(0)).epoch(0))
      for (const float v : ps::get<"x">(b).flat()) all += v;
    return all;
  };
  CHECK(sum(both) == 6);
  std::filesystem::remove(y);
  CHECK(sum(both | ps::fields<"x">) == 6);
  CHECK_THAT(penstock_test::error_of([&] { sum(both); }), contains("y.npz"));
}

TEST_CASE("source/npz_rows: a directory of more than 64 MiB is not read") {
  using namespace npz_rows_test;
  zip_writer zip;
  for (int i = 0; i < 1'040; ++i) zip.add(std::string(65'000, 'x') + std::to_string(i), "");
  CHECK(refusal(zip.text()).code == ps::errc::limit);
}

TEST_CASE("source/npz_rows: truncated files and noise are errors, or give rows within the file") {
  using namespace npz_rows_test;
  zip_writer zip;
  zip.wide_end = true;
  zip.add({.name = "a.npy", .bytes = array<float>(ps::extents(2, 3)), .wide = true});
  const std::string good = zip.text();
  REQUIRE(refusal(good).line.empty());
  for (std::size_t size = 0; size < good.size(); ++size)
    REQUIRE(refusal(good.substr(0, size)).code == ps::errc::format);
  ps::rng random(7, 7, 7);
  for (int round = 0; round < 2'000; ++round) {
    std::string noise = good;
    for (auto n = 1 + random.below(4); n > 0; --n) {
      const auto at = static_cast<std::size_t>(random.below(good.size()));
      noise[at] = static_cast<char>(random.below(256));
    }
    static_cast<void>(caught([&] {
      const auto rows = ps::npz_rows<float>(held(noise), "a");
      if (rows.size() * rows.row().elements() * 4 > noise.size()) FAIL("rows beyond the file");
      if (rows.size() < 100) static_cast<void>(values_of(rows));
    }));
  }
}

TEST_CASE("source/npz_rows: reads the output of Python's zipfile and numpy") {
  using namespace npz_rows_test;
  const penstock_test::temp_dir dir;
  const std::string python = penstock_test::peer_python();
  written(dir / "a.npy", array<float>(ps::extents(4, 3)));
  written(dir / "zip.py", R"py(
import sys, zipfile
folder = sys.argv[1]
member = open(folder + "/a.npy", "rb").read()
class pipe:
    def __init__(self, path): self.file = open(path, "wb")
    def write(self, data): return self.file.write(data)
    def flush(self): self.file.flush()
def save(target, wide=False, comment=b"", kind=zipfile.ZIP_STORED):
    with zipfile.ZipFile(target, "w", kind) as archive:
        archive.writestr("first.npy", b"")
        with archive.open("a.npy", "w", force_zip64=wide) as out:
            out.write(member)
        archive.comment = comment
save(folder + "/plain.npz")
save(folder + "/wide.npz", wide=True, comment=b"made by zipfile")
save(pipe(folder + "/pipe.npz"))
save(folder + "/packed.npz", kind=zipfile.ZIP_DEFLATED)
with zipfile.ZipFile(folder + "/many.npz", "w") as archive:
    for i in range(70000): archive.writestr("%d.npy" % i, b"")
    archive.writestr("a.npy", member)
)py");
  REQUIRE(
      penstock_test::run_program("python3 " + (dir / "zip.py").string() + " " + dir.path().string()).output ==
      "");
  for (const char* name : {"plain.npz", "wide.npz", "pipe.npz", "many.npz"}) {
    CAPTURE(name);
    CHECK(values_of(ps::npz_rows<float>((dir / name).string(), "a")) == counting(12));
    CHECK(values_of(ps::npz_rows<float>(ps::file((dir / name).string()), "a")) == counting(12));
  }
  CHECK_THAT(caught([&] { static_cast<void>(ps::npz_rows<float>((dir / "packed.npz").string(), "a")); }).line,
             contains("numpy.savez"));

  if (!penstock_test::have_program("numpy", python + " -c 'import numpy'")) return;
  written(dir / "np.py", R"py(
import sys, numpy as np
np.savez(sys.argv[1], np.arange(5), x=np.arange(12, dtype=">f4").reshape(4, 3), b=np.arange(6) % 2 == 1)
)py");
  const std::string path = (dir / "np.npz").string();
  REQUIRE(penstock_test::run_program(python + " " + (dir / "np.py").string() + " " + path).output == "");
  CHECK(values_of(ps::npz_rows<float>(path, "x")) == counting(12));
  CHECK(values_of(ps::npz_rows<std::int64_t>(path, "arr_0")) == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(values_of(ps::npz_rows<bool>(path, "b")) == std::vector<bool>{false, true, false, true, false, true});
}
