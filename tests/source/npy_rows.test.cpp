// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/npy_rows.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

#include <penstock/codec/npy.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

static_assert(ps::indexed_source<ps::npy_row_source<float, ps::mapped_file>>);
using codec_test::byte_vector;
using codec_test::caught;
using penstock_test::contains;

namespace npy_rows_test {

static_assert(ps::array_expression<ps::npy_row_source<float, ps::file>::element>);
static_assert(ps::static_array_expression<ps::npy_row_source<float, ps::file, 2, 3>::element>);

template <class T>
std::vector<T> counting(std::size_t count, int first = 0) {
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<T>(first + static_cast<int>(i)));
  return values;
}
template <class T>
byte_vector made(const ps::extents& shape, int first = 0) {
  const auto values = counting<T>(static_cast<std::size_t>(shape.elements()), first);
  return ps::npy_bytes<T>(shape, std::span<const T>(values));
}
std::string written(const std::filesystem::path& path, const byte_vector& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}
/// A file of version 1.0 with this header and `payload` bytes after it.
byte_vector with_header(std::string_view literal, std::size_t payload) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(literal.size() & 0xff);
  text += static_cast<char>(literal.size() >> 8);
  text += literal;
  return codec_test::joined(codec_test::to_vector(std::string_view(text)), byte_vector(payload));
}
/// All values of all rows; checks that written and viewed values are equal.
template <class Source>
auto all_of(const Source& source) {
  using T = typename Source::element::value_type;
  std::vector<T> all;
  bool same = true;
  const auto reader = source.connect();
  typename Source::reader::worker worker;
  for (std::uint64_t i = 0; i < source.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& row) {
      const auto values = std::make_unique<T[]>(static_cast<std::size_t>(row.shape().elements()) + 1);
      row.write_to(ps::destination(values.get(), row.shape()));
      const auto view = row.finish();
      same = same && view.shape() == source.row() &&
             std::equal(view.flat().begin(), view.flat().end(), values.get());
      all.insert(all.end(), view.flat().begin(), view.flat().end());
    });
  REQUIRE(same);
  return all;
}
template <class T = float, std::uint64_t... Lengths>
codec_test::thrown refusal(const byte_vector& file) {
  return caught(
      [&] { static_cast<void>(ps::npy_rows<T, Lengths...>(ps::memory_files().add("bad.npy", file))); });
}

}  // namespace npy_rows_test

TEMPLATE_TEST_CASE("source/npy_rows: reads rows of arrays of every type and rank", "", std::int8_t,
                   std::uint8_t, std::int16_t, std::uint32_t, std::int64_t, float, double) {
  using namespace npy_rows_test;
  using T = TestType;
  const penstock_test::temp_dir dir;
  for (const ps::extents& shape :
       {ps::extents(5), ps::extents(5, 3), ps::extents(5, 2, 4), ps::extents(5, 0)}) {
    CAPTURE(to_string(shape));
    const std::string path = written(dir / "x.npy", made<T>(shape));
    const auto want = counting<T>(static_cast<std::size_t>(shape.elements()));
    const auto mapped = ps::npy_rows<T>(path);
    CHECK(mapped.size() == 5);
    CHECK(mapped.row() == shape.drop_front());
    CHECK(all_of(mapped) == want);
    CHECK(all_of(ps::npy_rows<T>(ps::file(path))) == want);
    CHECK(all_of(ps::npy_rows<T>(ps::memory_files().add("x", made<T>(shape)))) == want);
    CHECK(mapped.connect().bytes_per_sample() == sizeof(T) * shape.drop_front().elements());
  }
}

TEST_CASE("source/npy_rows: several files are one dataset, and views point into the mapping") {
  using namespace npy_rows_test;
  const penstock_test::temp_dir dir;
  written(dir / "0.npy", made<float>(ps::extents(2, 3)));
  written(dir / "1.npy", made<float>(ps::extents(0, 3)));
  written(dir / "2.npy", made<float>(ps::extents(4, 3), 6));
  const std::string pattern = (dir / "{0..2}.npy").string();
  const auto source = ps::npy_rows<float>(pattern);
  CHECK(all_of(source) == counting<float>(18));
  CHECK(all_of(ps::npy_rows<float, 3>(pattern)) == counting<float>(18));
  CHECK(*source.starts() == std::vector<std::uint64_t>{0, 2, 6});
  CHECK_THAT(source.describe(), contains("3 files): 6 rows of (3,) 'f4'"));
  CHECK_THAT(source.connect().key(3), contains("2.npy:1"));
  const auto reader = source.connect();
  decltype(source)::reader::worker worker;
  const float* first = nullptr;
  reader.evaluate({0, 2}, worker, [&](const auto& row) { first = row.finish().data(); });
  reader.evaluate({0, 5}, worker, [&](const auto& row) { CHECK(row.finish().data() == first + 9); });
  CHECK(worker.scratch.capacity() == 0);
  reader.ranges(5, penstock::detail::hint_sink{});
  reader.ranges(6, penstock::detail::hint_sink{});
  CHECK(caught([&] { reader.evaluate({0, 6}, worker, [](const auto&) {}); }).code == ps::errc::argument);
  const auto behind = caught([&] {
    reader.evaluate({0, 3}, worker, [](const auto&) { throw ps::error(ps::errc::format, "no"); });
  });
  CHECK_THAT(behind.line, contains("2.npy") && contains("offset 140"));
}

TEST_CASE("source/npy_rows: bools of other programs' files become zero and one") {
  using namespace npy_rows_test;
  byte_vector file = with_header("{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", 0);
  for (const int value : {0, 1, 2, 255}) file.push_back(static_cast<std::byte>(value));
  CHECK(all_of(ps::npy_rows<bool>(ps::memory_files().add("x", file))) ==
        std::vector<bool>{false, true, true, true});
}

TEST_CASE("source/npy_rows: misaligned rows are copied when they are finished") {
  using namespace npy_rows_test;
  for (std::size_t spaces = 0; spaces < 8; ++spaces) {
    const std::string literal =
        "{'descr': '=f8', 'fortran_order': False, 'shape': (3, 2)}" + std::string(spaces, ' ');
    byte_vector file = with_header(literal, 48);
    const auto values = counting<double>(6);
    std::memcpy(file.data() + file.size() - 48, values.data(), 48);
    CHECK(all_of(ps::npy_rows<double>(ps::memory_files().add("x", file))) == values);
  }
}

TEST_CASE("source/npy_rows: files of either byte order give equal rows") {
  using namespace npy_rows_test;
  byte_vector little = with_header("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 2)}", 0);
  byte_vector big = with_header("{'descr': '>i4', 'fortran_order': False, 'shape': (2, 2)}", 0);
  for (const int value : {0x01020304, 5, -1, 256}) {
    const auto bits = static_cast<std::uint32_t>(value);
    for (unsigned i = 0; i < 4; ++i) {
      little.push_back(static_cast<std::byte>(bits >> (8 * i)));
      big.push_back(static_cast<std::byte>(bits >> (24 - 8 * i)));
    }
  }
  const std::vector<std::int32_t> both = {0x01020304, 5, -1, 256, 0x01020304, 5, -1, 256};
  CHECK(all_of(ps::npy_rows<std::int32_t>(ps::memory_files().add("a", little).add("b", big))) == both);
}

TEST_CASE("source/npy_rows: rows land in batches, in a shuffled order and with any number of workers") {
  using namespace npy_rows_test;
  const auto memory = ps::memory_files()
                          .add("a", made<float>(ps::extents(30, 4)))
                          .add("b", made<float>(ps::extents(34, 4), 120));
  const auto given = ps::npy_rows<float>(memory);
  const auto known = ps::npy_rows<float, 4>(memory);
  CHECK(penstock_test::values_of(given | ps::batch(8), 3) == counting<float>(256));
  CHECK(penstock_test::values_of(known | ps::batch(8), 3) == counting<float>(256));
  CHECK(penstock_test::values_of(given | ps::shuffle(ps::seed(2)) | ps::batch(8)) ==
        penstock_test::values_of(known | ps::shuffle(ps::seed(2)) | ps::batch(8), 3));
  const auto numbers =
      ps::npy_rows<std::int32_t>(ps::memory_files().add("n", made<std::int32_t>(ps::extents(16))));
  CHECK(penstock_test::values_of(numbers | ps::batch(4)) == counting<std::int32_t>(16));

  const auto reader = known.connect();
  decltype(known)::reader::worker worker;
  float sum = 0;
  CHECK(penstock_test::allocations_of([&] {
          for (std::uint64_t i = 0; i < known.size(); ++i)
            reader.evaluate({0, i}, worker, [&](const auto& row) { sum += row.finish().data()[0]; });
        }) == 0);
  CHECK(sum > 0);
}

TEST_CASE("source/npy_rows: an array that differs from the request is refused by name") {
  using namespace npy_rows_test;
  const auto header = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  };
  CHECK(refusal(with_header(header("<f4", "False", "(2, 3)"), 24)).line.empty());
  const auto check = [&](const std::string& literal, std::size_t payload, const std::string& part) {
    CAPTURE(literal);
    const auto error = refusal(with_header(literal, payload));
    CHECK(error.code == ps::errc::format);
    CHECK_THAT(error.line, contains(part) && contains("bad.npy") && contains("offset"));
  };
  check(header("<f8", "False", "(2, 3)"), 48, "dtype '<f8', but 'f4' was asked for");
  check(header("<i4", "False", "(2, 3)"), 24, "dtype '<i4'");
  check(header("|O", "False", "(2, 3)"), 24, "object");
  check(header("<f4", "True", "(2, 3)"), 24, "Fortran order");
  check(header("<f4", "False", "()"), 4, "has no rows");
  check(header("<f4", "False", "(2, 3)"), 23, "which is 24 bytes, but 23 follow");
  check(header("<f4", "False", "(2, 3)"), 25, "but 25 follow");
  check(header("<f4", "False", "(4611686018427387904, 4)"), 0, "no file can hold");
  // a file from numpy.savez: the bytes at the place of the header's length are not a length
  const std::string_view archive("PK\3\4\x2d\0\x8\0aaaaaaaa", 16);
  const auto npz = refusal({reinterpret_cast<const std::byte*>(archive.data()),
                            reinterpret_cast<const std::byte*>(archive.data()) + archive.size()});
  CHECK(npz.code == ps::errc::format);
  CHECK_THAT(npz.line,
             contains("not an npy file") && contains("see npz<T> and npz_rows") && contains("bad.npy"));
  // with one dimension both orders are equal
  CHECK(refusal(with_header(header("<f4", "True", "(6,)"), 24)).line.empty());
  CHECK(refusal<float, 3>(with_header(header("<f4", "False", "(2, 3)"), 24)).line.empty());
  const auto shape = refusal<float, 4>(with_header(header("<f4", "False", "(2, 3)"), 24));
  CHECK(shape.code == ps::errc::shape);
  CHECK_THAT(shape.line, contains("shape (3,)") && contains("(4,) was asked for"));
  const auto differ = caught([&] {
    static_cast<void>(ps::npy_rows<float>(ps::memory_files()
                                              .add("a", made<float>(ps::extents(2, 3)))
                                              .add("b", made<float>(ps::extents(2, 4)))));
  });
  CHECK(differ.code == ps::errc::shape);
  CHECK_THAT(differ.line, contains("(4,)") && contains("(3,) in a") && contains("file b"));
}

TEST_CASE("source/npy_rows: empty rows may be many, but not more than can be counted") {
  using namespace npy_rows_test;
  const byte_vector file =
      with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976, 0), }\n", 0);
  ps::memory_files files;
  files.add("0.npy", file);
  CHECK(ps::npy_rows<float>(files).size() == std::uint64_t{1} << 60);
  for (int i = 1; i < 17; ++i) files.add(std::to_string(i) + ".npy", file);
  const auto e = caught([&] { static_cast<void>(ps::npy_rows<float>(files)); });
  CHECK(e.code == ps::errc::limit);
  CHECK_THAT(e.line, contains("4.npy"));
}

TEST_CASE("source/npy_rows: truncated files and noise are errors") {
  using namespace npy_rows_test;
  const byte_vector good = made<float>(ps::extents(2, 3));
  for (std::size_t size = 0; size < good.size(); ++size)
    REQUIRE(refusal(byte_vector(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))).code ==
            ps::errc::format);
  byte_vector huge = good;
  huge[6] = std::byte{2};
  huge[10] = std::byte{0xff};
  CHECK(refusal(huge).code == ps::errc::limit);
  ps::rng random(7, 7, 7);
  for (int round = 0; round < 500; ++round) {
    byte_vector noise = good;
    for (auto n = 1 + random.below(4); n > 0; --n)
      noise[random.below(128)] = static_cast<std::byte>(random.below(128));
    static_cast<void>(refusal(noise));
  }
}

TEST_CASE("source/npy_rows: the fingerprint changes with the files, and a changed file is noticed") {
  using namespace npy_rows_test;
  const penstock_test::temp_dir dir;
  const std::string path = written(dir / "x.npy", made<float>(ps::extents(2, 3)));
  const auto source = ps::npy_rows<float>(ps::file(path));
  CHECK(source.fingerprint() == ps::npy_rows<float, 3>(path).fingerprint());
  written(dir / "x.npy", made<float>(ps::extents(3, 3)));
  CHECK(source.fingerprint() != ps::npy_rows<float>(path).fingerprint());
  decltype(source)::reader::worker worker;
  const auto error = caught([&] { source.connect().evaluate({0, 0}, worker, [](const auto&) {}); });
  CHECK(error.code == ps::errc::io);
  CHECK_THAT(error.line, contains("was changed") && contains("x.npy"));
  CHECK(caught([&] { static_cast<void>(ps::npy_rows<float>((dir / "no.npy").string())); }).code ==
        ps::errc::io);
}

TEST_CASE("source/npy_rows: bools in a loop without batches, and from a decoded member") {
  const std::array<bool, 6> truths = {true, false, true, true, false, false};
  const byte_vector file = ps::npy_bytes<bool>(ps::extents(3, 2), truths);
  std::vector<bool> rows, decoded;
  const auto plan = ps::npy_rows<bool>(ps::memory_files().add("x", file)) | ps::workers(1);
  for (const auto& row : plan) rows.insert(rows.end(), row.values().begin(), row.values().end());
  CHECK(rows == std::vector<bool>(truths.begin(), truths.end()));
  const auto files = ps::from(std::vector<std::string>{std::string(ps::text_of(file))});
  const auto arrays = files | ps::decode<ps::npy<bool>> | ps::workers(1);
  for (const auto& array : arrays)
    decoded.insert(decoded.end(), array.values().begin(), array.values().end());
  CHECK(decoded == rows);
}

TEST_CASE("source/npy_rows: real files of numpy") {
  using namespace npy_rows_test;
  const auto folder = penstock_test::test_data("npy");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no npy: real files are not read");
    return;
  }
  std::size_t read = 0;
  codec_test::each_file(*folder, [&](const std::string& name, const byte_vector& bytes) {
    CAPTURE(name);
    const auto rows = [&]<class T>(T) {
      ps::npy<T> codec;
      typename ps::npy<T>::scratch scratch;
      if (!caught([&] { static_cast<void>(codec.decode(bytes, scratch)); }).line.empty()) {
        CHECK(!refusal<T>(bytes).line.empty());
        return;
      }
      const auto array = codec.decode(bytes, scratch);
      const auto view = array.finish();
      const auto source = ps::npy_rows<T>(ps::memory_files().add(name, bytes));
      CHECK(source.size() == array.shape()[0]);
      CHECK(all_of(source) == std::vector<T>(view.flat().begin(), view.flat().end()));
      ++read;
    };
    rows(float{});
    rows(std::int16_t{});
  });
  CHECK(read > 0);
}
