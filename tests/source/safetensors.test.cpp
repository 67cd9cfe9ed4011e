// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/safetensors.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/external_program.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"

#include <penstock/order/shuffle.hpp>
#include <penstock/source/dataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
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

static_assert(ps::indexed_source<ps::safetensors_row_source<float, ps::mapped_file>>);
using penstock_test::contains;

namespace safetensors_test {

template <class F>
ps::error error_in(F&& f) {
  try {
    f();
  } catch (const ps::error& e) {
    return e;
  }
  FAIL("no error");
  return {ps::errc::argument, ""};
}

/// A user's two-byte type that the format knows.
struct half_of_mine {
  std::uint16_t bits;
};

/// A file with this header, then these bytes; `length`, if given, replaces the header's length.
std::string file_text(std::string_view header, std::string_view data = {}, std::int64_t length = -1) {
  std::uint64_t said = length < 0 ? header.size() : static_cast<std::uint64_t>(length);
  std::string text;
  for (int i = 0; i < 8; ++i, said >>= 8) text += static_cast<char>(said & 0xff);
  return text.append(header).append(data);
}
std::string written(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}
/// `count` numbers from `first`, as bytes in memory order.
template <class T>
std::string numbers(int count, int first = 0) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const T value = static_cast<T>(first + i);
    text.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  return text;
}
std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::string_view offsets) {
  std::string text = "\"";
  text.append(name).append("\":{\"dtype\":\"").append(dtype).append("\",\"shape\":").append(shape);
  return text.append(",\"data_offsets\":").append(offsets).append("}");
}
/// The error for such a file; checks that the mapped file and its rows agree.
ps::error refusal(const std::string& text) {
  const penstock_test::temp_dir dir;
  const std::string path = written(dir / "bad.safetensors", text);
  const auto found = error_in([&] { ps::safetensors_file{path}; });
  CHECK(found.file() == path);
  const auto rows = error_in([&] {
    static_cast<void>(ps::safetensors_rows<float>(
        ps::memory_files().add("bad", codec_test::to_vector(std::string_view(text))), "a"));
  });
  CHECK(rows.message() == found.message());
  return found;
}

}  // namespace safetensors_test

template <>
inline constexpr std::string_view penstock::safetensors_dtype<safetensors_test::half_of_mine> = "BF16";

TEST_CASE("source/safetensors: tensors of a mapped file, by name and type") {
  using namespace safetensors_test;
  const penstock_test::temp_dir dir;
  const std::string data = numbers<float>(6) + numbers<std::int64_t>(1, 7) + numbers<std::int16_t>(2, -3) +
                           std::string("\x01\x00", 2) + "abcd" + std::string("\0\x38", 2);
  std::string header =
      "{" + entry("w.0", "F32", "[2,3]", "[0,24]") + "," + entry("one", "I64", "[]", "[24,32]") + "," +
      entry("\\u00e4", "I16", "[2]", "[32,36]") + "," + entry("no", "F64", "[0,5]", "[24,24]") + "," +
      entry("yes", "BOOL", "[2]", "[36,38]") + "," + entry("h", "BF16", "[2,1]", "[38,42]") + "," +
      entry("f16", "F16", "[1]", "[42,44]") + ",\"__metadata__\":{\"format\":\"pt\",\"n\":\"\"}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const ps::safetensors_file all(written(dir / "a.safetensors", file_text(header, data)));
  CHECK(all.tensors().size() == 7);
  CHECK(all.metadata().at("format") == "pt");
  const auto weights = all.tensor<float>("w.0");
  CHECK(weights.shape() == ps::extents(2, 3));
  CHECK(weights[1].data()[2] == 5.0f);
  CHECK(all.tensor<std::int64_t>("one").shape() == ps::extents());
  CHECK(*all.tensor<std::int64_t>("one").data() == 7);
  CHECK(all.tensor<std::int16_t>("\xc3\xa4").data()[1] == -2);
  CHECK(all.tensor<double>("no").size() == 0);
  CHECK(all.tensor<bool>("yes").data()[0]);
  CHECK(all.tensor<half_of_mine>("h").shape() == ps::extents(2, 1));
  CHECK(ps::text_of(all.bytes("h")) == "abcd");
  CHECK(all.tensor<ps::bfloat16>("h").data()[1].bits() == 0x6463);
  CHECK(all.tensor<ps::half>("f16").data()[0] == 0.5f);
  CHECK(all.tensors().find("h")->second.dtype == "BF16");
  const ps::safetensors_file copy = all;  // shares the mapping
  CHECK(copy.tensor<float>("w.0").data() == weights.data());
  all.confirm();

  const auto missing = error_in([&] { (void)all.tensor<float>("w.1"); });
  CHECK((missing.code() == ps::errc::missing));
  CHECK_THAT(missing.what(), contains("no tensor 'w.1'; it has: f16, h, no, one, w.0"));
  CHECK(missing.file() == all.path());
  const auto wrong = error_in([&] { (void)all.tensor<std::int32_t>("w.0"); });
  CHECK((wrong.code() == ps::errc::format));
  CHECK_THAT(wrong.what(), contains("is of F32, but I32 was asked for"));
}

TEST_CASE("source/safetensors: no tensors, bytes that are not booleans, and misaligned tensors") {
  using namespace safetensors_test;
  const penstock_test::temp_dir dir;
  CHECK(ps::safetensors_file(written(dir / "0", file_text("{}"))).tensors().empty());
  CHECK(ps::safetensors_file(written(dir / "1", file_text("{\"__metadata__\":{}}  "))).tensors().empty());
  const std::string header =
      "{" + entry("b", "BOOL", "[3]", "[0,3]") + "," + entry("f", "F32", "[1]", "[3,7]") + "}";
  const ps::safetensors_file odd(
      written(dir / "2", file_text(header, std::string("\1\2\0", 3) + numbers<float>(1, 5))));
  const auto no_bool = error_in([&] { (void)odd.tensor<bool>("b"); });
  CHECK_THAT(no_bool.what(), contains("neither 0 nor 1"));
  CHECK(no_bool.offset() == 8 + header.size() + 1);
  CHECK(odd.bytes("f").size() == 4);
  // whatever the header's length, one of the two is misaligned
  const ps::safetensors_file other(
      written(dir / "3", file_text(header + " ", std::string(3, '\0') + numbers<float>(1, 5))));
  int refused = 0;
  for (const auto* one : {&odd, &other}) {
    if (reinterpret_cast<std::uintptr_t>(one->bytes("f").data()) % alignof(float) == 0) {
      CHECK(*one->tensor<float>("f").data() == 5.0f);
    } else {
      CHECK_THAT(error_in([&] { (void)one->tensor<float>("f"); }).what(), contains("not a multiple of 4"));
      ++refused;
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("source/safetensors: rows of a tensor in several files are one dataset") {
  using namespace safetensors_test;
  const penstock_test::temp_dir dir;
  const auto header = [](int rows) {
    const std::string r = std::to_string(rows), end = std::to_string(rows * 12);
    return "{" + entry("x", "F32", "[" + r + ",3]", "[0," + end + "]") + "}";
  };
  written(dir / "0.st", file_text(header(2), numbers<float>(6)));
  written(dir / "1.st", file_text(header(0)));
  written(dir / "2.st", file_text(header(3), numbers<float>(9, 6)));
  const std::string pattern = (dir / "{0..2}.st").string();
  const auto all_of = [](const auto& source) {
    std::vector<float> all;
    const auto reader = source.connect();
    typename std::remove_cvref_t<decltype(source)>::reader::worker worker;
    for (std::uint64_t i = 0; i < source.size(); ++i)
      reader.evaluate({0, i}, worker, [&](const auto& row) {
        const auto view = row.finish();
        all.insert(all.end(), view.flat().begin(), view.flat().end());
      });
    return all;
  };
  std::vector<float> want;
  for (int i = 0; i < 15; ++i) want.push_back(static_cast<float>(i));
  const auto rows = ps::safetensors_rows<float>(pattern, "x");
  CHECK(rows.size() == 5);
  CHECK(all_of(rows) == want);
  CHECK(all_of(ps::safetensors_rows<float, 3>(pattern, "x")) == want);
  CHECK(all_of(ps::safetensors_rows<float>(ps::file(pattern), "x")) == want);
  CHECK_THAT(rows.describe(), contains("safetensors_rows(3 files): 5 rows of (3,) 'F32'"));
  CHECK(rows.connect().key(3) == (dir / "2.st").string() + ":1");
  CHECK(rows.fingerprint() == ps::safetensors_rows<float>(pattern, "x").fingerprint());

  // Another tensor with as many rows in this file is different data.
  const std::string pair = written(dir / "pair", file_text("{" + entry("x", "F32", "[2]", "[0,8]") + "," +
                                                               entry("y", "F32", "[2]", "[8,16]") + "}",
                                                           numbers<float>(4)));
  CHECK(ps::safetensors_rows<float>(pair, "x").fingerprint() !=
        ps::safetensors_rows<float>(pair, "y").fingerprint());
  const auto batched = ps::safetensors_rows<float, 3>(pattern, "x") | ps::shuffle(ps::seed(3)) | ps::batch(5);
  auto run = batched.open();
  int batches = 0;
  for (auto epoch : run.epochs(1))
    for (auto&& one : epoch) {
      batches += one.size() == 5 ? 1 : 0;
    }
  CHECK(batches == 1);

  const auto shape = error_in([&] { (void)ps::safetensors_rows<float, 4>(pattern, "x"); });
  CHECK((shape.code() == ps::errc::shape));
  CHECK((error_in([&] { (void)ps::safetensors_rows<double>(pattern, "x"); }).code() == ps::errc::format));
  CHECK((error_in([&] { (void)ps::safetensors_rows<float>(pattern, "y"); }).code() == ps::errc::missing));
  written(dir / "1.st", file_text("{" + entry("x", "F32", "[]", "[0,4]") + "}", numbers<float>(1)));
  CHECK_THAT(error_in([&] { (void)ps::safetensors_rows<float>(pattern, "x"); }).what(),
             contains("has no rows"));
}

TEST_CASE("source/safetensors: a false header is one error") {
  using namespace safetensors_test;
  const std::string four(4, 'x');
  struct row {
    std::string text;
    const char* says;
    std::uint64_t offset;
    ps::errc code = ps::errc::format;
  };
  const auto one = [](std::string_view dtype, std::string_view shape, std::string_view offsets) {
    return file_text("{" + entry("a", dtype, shape, offsets) + "}", "xxxx");
  };
  const std::string good = entry("a", "F32", "[1]", "[0,4]");
  for (const row& r : {
           row{"", "within its first 8 bytes", 0},
           row{"1234567", "within its first 8 bytes", 0},
           row{file_text("", ""), "does not begin with '{'", 8},
           row{file_text("{}", "", 3), "3 bytes, but 2 follow", 0},
           row{file_text("{}", "", 0x7fffffffffffffff), "the format allows", 0, ps::errc::limit},
           row{file_text("{}", "", 100'000'001), "the format allows", 0, ps::errc::limit},
           row{file_text(" {}"), "does not begin with '{'", 8},
           row{file_text("[]"), "does not begin with '{'", 8},
           row{file_text("{"), "not JSON", 9},
           row{file_text("{}}"), "not JSON", 10},
           row{file_text("{\"a\xff\":1}"), "not JSON", 11},
           row{file_text("{}", "x"), "describes 0 bytes, but 1 follow", 10},
           row{file_text("{" + good + "}", "xxx"), "describes 4 bytes, but 3 follow", 10 + good.size()},
           row{file_text("{" + good + "}", "xxxxx"), "describes 4 bytes, but 5 follow", 10 + good.size()},
           row{file_text("{" + good + "," + good + "}", four), "appears twice", 8},
           row{file_text("{\"__metadata__\":{},\"__metadata__\":{}}"), "appears twice", 8},
           row{file_text("{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}"), "the key 'k' twice", 8},
           row{file_text("{\"__metadata__\":{\"k\":1}}"), "not text", 8},
           row{file_text("{\"__metadata__\":{\"k\":{}}}"), "not text", 8},
           row{file_text("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}"), "the key 'dtype' twice", 8},
           row{file_text("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}"), "is not described as", 8},
           row{file_text("{\"a\":{}}"), "is not described as", 8},
           row{file_text("{\"a\":3}"), "is not described as", 8},
           row{file_text("{\"a\":[]}"), "is not described as", 8},
           row{file_text("{\"a\":{\"shape\":{}}}"), "is not described as", 8},
           row{file_text("{\"a\":{\"more\":1}}"), "the format does not know", 8},
           row{one("F33", "[1]", "[0,4]"), "of dtype 'F33'", 8},
           row{one("F32", "[-1]", "[0,4]"), "is not described as", 8},
           row{one("F32", "[1.0]", "[0,4]"), "is not described as", 8},
           row{one("F32", "[[1]]", "[0,4]"), "is not described as", 8},
           row{one("F32", "[1]", "[0]"), "is not described as", 8},
           row{one("F32", "[1]", "[0,4,4]"), "is not described as", 8},
           row{one("F32", "[1]", "[4,0]"), "ends before it begins", 8},
           row{one("F32", "[2]", "[0,4]"), "which does not match", 8},
           row{one("F4", "[3]", "[0,1]"), "which does not match", 8},
           row{one("F32", "[4294967296,4294967296]", "[0,0]"), "more elements than can be counted", 8},
           row{one("F32", "[18446744073709551616]", "[0,4]"), "is not described as", 8},
           row{one("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), "more than eight dimensions", 8},
           row{one("F32", "[1]", "[1,5]"), "there is a gap", 8},
           row{one("U8", "[2305843009213693951]", "[0,2305843009213693951]"), "bytes, but 4 follow", 0},
           row{file_text("{" + good + "," + entry("b", "F32", "[1]", "[2,6]") + "}", "xxxxxx"),
               "they overlap", 8},
           row{file_text("{" + good + "," + entry("b", "F32", "[1]", "[0,4]") + "}", four), "they overlap",
               8},
       }) {
    INFO(r.says);
    const auto found = refusal(r.text);
    CHECK_THAT(found.what(), contains(r.says));
    CHECK((found.code() == r.code));
    if (r.offset != 0 || found.offset() == 0) CHECK(found.offset() == r.offset);
  }
  // nesting costs nothing, and names may be long
  CHECK_THAT(refusal(file_text("{\"a\":" + std::string(1'000'000, '['))).what(),
             contains("is not described as"));
  const penstock_test::temp_dir dir;
  const std::string name(10'000'000, 'n');
  const ps::safetensors_file named(
      written(dir / "long", file_text("{" + entry(name, "F32", "[1]", "[0,4]") + "}", four)));
  CHECK(named.bytes(name).size() == 4);
  CHECK((error_in([&] { (void)named.bytes("a"); }).code() == ps::errc::missing));
}

TEST_CASE("source/safetensors: reads files of the safetensors package") {
  using namespace safetensors_test;
  const std::string python = penstock_test::peer_python();
  if (!penstock_test::have_program("Python's safetensors", python + " -c 'import safetensors.numpy, numpy'"))
    return;
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "p.safetensors").string();
  std::ofstream(dir / "write.py") << R"py(
import sys, numpy as np
from safetensors.numpy import save_file
types = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
         np.float32, np.float64]
tensors = {np.dtype(t).name: np.arange(24).astype(t).reshape(4, 3, 2) for t in types}
tensors["bool"] = np.arange(24).reshape(4, 3, 2) % 2 == 1
tensors["zero"] = np.zeros((4, 0), np.float32)
tensors["one"] = np.array(5, np.int64)
save_file(tensors, sys.argv[1], metadata={"by": "numpy"})
)py";
  REQUIRE(penstock_test::run_program(python + " " + (dir / "write.py").string() + " " + path).status == 0);
  const ps::safetensors_file all(path);
  CHECK(all.metadata().at("by") == "numpy");
  CHECK(all.tensors().size() == 13);
  const auto check = [&]<class T>(const char* name, T) {
    INFO(name);
    const auto found = all.tensor<T>(name);
    CHECK(found.shape() == ps::extents(4, 3, 2));
    bool same = true;
    for (std::size_t i = 0; i < found.size(); ++i) same = same && found.data()[i] == static_cast<T>(i);
    CHECK(same);
    const auto rows = ps::safetensors_rows<T>(path, name);
    CHECK(rows.size() == 4);
    const auto reader = rows.connect();
    typename decltype(rows.connect())::worker worker;
    reader.evaluate({0, 3}, worker,
                    [&](const auto& row) { CHECK(row.finish().data()[5] == static_cast<T>(23)); });
  };
  check("int8", std::int8_t{});
  check("uint8", std::uint8_t{});
  check("int16", std::int16_t{});
  check("uint16", std::uint16_t{});
  check("int32", std::int32_t{});
  check("uint32", std::uint32_t{});
  check("int64", std::int64_t{});
  check("uint64", std::uint64_t{});
  check("float32", float{});
  check("float64", double{});
  CHECK(all.tensor<bool>("bool").data()[23]);
  CHECK(all.tensor<float>("zero").shape() == ps::extents(4, 0));
  CHECK(*all.tensor<std::int64_t>("one").data() == 5);
}

TEST_CASE("source/safetensors: metadata of null, and files without tensors") {
  const ps::safetensors_file file(penstock_test::fixture("reports/null_metadata.safetensors").string());
  CHECK(file.metadata().empty());
  CHECK(std::ranges::all_of(file.bytes("x"), [](std::byte b) { return b == std::byte{0}; }));
  CHECK(file.bytes("x").size() == 8);  // at an odd address
  CHECK(penstock_test::values_of(ps::safetensors_rows<float>(file.path(), "x") | ps::batch(2), 1) ==
        std::vector<float>{0, 0});
  const std::string none = penstock_test::fixture("reports/no_tensors.safetensors").string();
  CHECK(ps::safetensors_file(none).metadata().at("a") == "b");
  for (const std::string& line :
       {penstock_test::error_of([&] { (void)ps::safetensors_rows<float>(none, "x"); }),
        penstock_test::error_of([&] { (void)ps::safetensors_file(none).bytes("x"); }),
        penstock_test::error_of([&] { (void)ps::dataset(none, ps::safetensors_rows_format<>{}); })})
    CHECK_THAT(
        line, penstock_test::contains("has no tensors") && penstock_test::contains("no_tensors.safetensors"));
}
