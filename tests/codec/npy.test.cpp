// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/npy.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/random.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/external_program.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using penstock_test::contains;

namespace npy_test {

/// A number type that the standard lacks: sixteen bits, as in files of half floats.
struct half {
  std::uint16_t bits;
  friend bool operator==(half, half) = default;
};

}  // namespace npy_test

template <>
inline constexpr char penstock::npy_kind<npy_test::half> = 'f';

static_assert(ps::codec<ps::npy<float>>);
static_assert(ps::array_expression<ps::decoded<ps::npy<float>, ps::bytes_view>>);
static_assert(
    std::is_same_v<decltype(ps::finish(std::declval<ps::npy_array<float>>())), ps::tensor_view<const float>>);

namespace npy_test {

/// A file with any header text, of any version, with `payload` bytes counting up after it.
byte_vector made(std::string_view dict, std::size_t payload, int major = 1) {
  std::string file = {'\x93', 'N', 'U', 'M', 'P', 'Y', static_cast<char>(major), '\0'};
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) file += static_cast<char>(dict.size() >> (8 * i) & 0xff);
  file += dict;
  for (std::size_t i = 0; i < payload; ++i) file += static_cast<char>(i);
  return codec_test::to_vector(file);
}

template <class T>
std::vector<T> read(const byte_vector& file, ps::extents* shape = nullptr) {
  typename ps::npy<T>::scratch scratch;
  const auto array = ps::npy<T>{}.decode(file, scratch);
  if (shape != nullptr) *shape = array.shape();
  const auto size = static_cast<std::size_t>(array.shape().elements());
  const auto values = std::make_unique<T[]>(size);  // not a vector, because vector<bool> is different
  array.write_to(ps::destination(values.get(), array.shape()));
  const auto view = array.finish();
  REQUIRE(view.shape() == array.shape());
  if (size != 0) REQUIRE(std::memcmp(view.data(), values.get(), size * sizeof(T)) == 0);
  return std::vector<T>(values.get(), values.get() + size);
}
template <class T = float>
std::string refusal(const byte_vector& file) {
  const auto error = caught([&] { read<T>(file); });
  if (!error.line.empty()) CHECK(error.code == ps::errc::format);
  return error.line;
}

template <class T>
void round_trip() {
  ps::rng random(1, sizeof(T), 3);
  for (int i = 0; i < 50; ++i) {
    ps::extents shape;
    for (auto rank = random.below(5); rank > 0; --rank) shape.push_back(random.below(5));
    std::vector<T> values(static_cast<std::size_t>(shape.elements()));
    for (T& value : values) {
      const std::uint64_t bits = random();
      std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
    }
    const byte_vector file = ps::npy_bytes<T>(shape, values);
    REQUIRE((file.size() - values.size() * sizeof(T)) % 64 == 0);
    ps::extents found;
    const auto out = read<T>(file, &found);
    REQUIRE(found == shape);
    // compared as bytes, because random floats may be NaN
    REQUIRE(out.size() == values.size());
    if (!out.empty()) REQUIRE(std::memcmp(out.data(), values.data(), out.size() * sizeof(T)) == 0);
  }
}

}  // namespace npy_test

TEST_CASE("codec/npy: reads back arrays of every type and shape") {
  using namespace npy_test;
  round_trip<std::int8_t>();
  round_trip<std::uint8_t>();
  round_trip<std::byte>();
  round_trip<std::int16_t>();
  round_trip<std::uint16_t>();
  round_trip<std::int32_t>();
  round_trip<std::uint32_t>();
  round_trip<std::int64_t>();
  round_trip<std::uint64_t>();
  round_trip<float>();
  round_trip<double>();
  round_trip<half>();
  round_trip<ps::half>();
  const std::array<bool, 3> truths = {true, false, true};
  CHECK(read<bool>(ps::npy_bytes<bool>(ps::extents(3), truths)) == std::vector<bool>{true, false, true});
}

TEST_CASE("codec/npy: writes the header that numpy writes") {
  const std::vector<float> values(6);
  const byte_vector file = ps::npy_bytes<float>(ps::extents(2, 3), values);
  const std::string_view text = ps::text_of(file);
  CHECK(file.size() == 128 + 24);
  CHECK(text.substr(0, 10) == std::string_view("\x93NUMPY\x01\x00\x76\x00", 10));
  const std::string order = std::endian::native == std::endian::little ? "<" : ">";
  CHECK(text.substr(10, 60) == "{'descr': '" + order + "f4', 'fortran_order': False, 'shape': (2, 3), } ");
  CHECK(text[127] == '\n');
  CHECK(ps::text_of(ps::npy_bytes<std::int8_t>(ps::extents(5), std::vector<std::int8_t>(5))).find("'|i1'") !=
        std::string::npos);
  CHECK(ps::text_of(ps::npy_bytes<double>(ps::extents(), std::vector<double>(1))).find("'shape': ()") !=
        std::string::npos);
  CHECK(caught([&] { static_cast<void>(ps::npy_bytes<float>(ps::extents(2, 2), values)); }).code ==
        ps::errc::argument);
}

TEST_CASE("codec/npy: reads headers in any layout") {
  const std::string_view dicts[] = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
      "{'descr':'<f4','fortran_order':False,'shape':(2,3)}",
      "  {\"shape\" : ( 2 , 3 , ) ,\n\"fortran_order\" : False , \"descr\" : \"<f4\" }  \n",
      "{'shape': (2L, 3L), 'descr': '=f4', 'fortran_order': False, }   \n",  // Python 2
      "{'descr': '|f4', 'fortran_order': False, 'shape': (2, 3), }",
      "{'descr': 'f4', 'fortran_order': False, 'shape': (2, 3), }",
  };
  for (const int major : {1, 2, 3})
    for (const std::string_view dict : dicts) {
      CAPTURE(major, dict);
      ps::extents shape;
      const auto values = npy_test::read<float>(npy_test::made(dict, 24, major), &shape);
      CHECK(shape == ps::extents(2, 3));
      const bool swapped =
          std::endian::native == std::endian::big && dict.find("<f4") != std::string_view::npos;
      CHECK(std::to_integer<int>(reinterpret_cast<const std::byte*>(values.data())[23]) ==
            (swapped ? 20 : 23));
    }
  // with one dimension both orders are equal
  CHECK(npy_test::read<float>(npy_test::made("{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }", 24))
            .size() == 6);
}

TEST_CASE("codec/npy: swaps the other byte order") {
  const auto file = npy_test::made("{'descr': '>u4', 'fortran_order': False, 'shape': (2,), }", 8);
  CHECK(npy_test::read<std::uint32_t>(file) == std::vector<std::uint32_t>{0x00010203, 0x04050607});
  const auto wide = npy_test::made("{'descr': '>i8', 'fortran_order': False, 'shape': (1,), }", 8);
  CHECK(npy_test::read<std::int64_t>(wide) == std::vector<std::int64_t>{0x0001020304050607});
  CHECK(npy_test::read<std::uint8_t>(
            npy_test::made("{'descr': '>u1', 'fortran_order': False, 'shape': (2,), }", 2)) ==
        std::vector<std::uint8_t>{0, 1});
}

TEST_CASE("codec/npy: a view is in place if possible, and always aligned") {
  const std::vector<double> values = {1.5, -2.5, 3.5};
  const byte_vector file = ps::npy_bytes<double>(ps::extents(3), values);
  for (std::size_t shift = 0; shift < 8; ++shift) {
    ps::buffer moved(file.size() + shift);
    ps::npy<double>::scratch scratch;
    std::memcpy(moved.data() + shift, file.data(), file.size());
    const auto view = ps::npy<double>{}.decode(moved.view().subspan(shift), scratch).finish();
    CHECK(reinterpret_cast<std::uintptr_t>(view.data()) % alignof(double) == 0);
    CHECK(std::equal(view.flat().begin(), view.flat().end(), values.begin(), values.end()));
    CHECK((scratch.values.size() == 0) == (shift == 0));
  }
}

TEST_CASE("codec/npy: any nonzero byte becomes a true bool") {
  const auto file = npy_test::made("{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }", 4);
  CHECK(npy_test::read<bool>(file) == std::vector<bool>{false, true, true, true});
}

TEST_CASE("codec/npy: refuses unsupported arrays, and says why") {
  using npy_test::made;
  using npy_test::refusal;
  CHECK_THAT(refusal(made("{'descr': '|O', 'fortran_order': False, 'shape': (4,), }", 32)),
             contains("pickled"));
  CHECK_THAT(refusal(made("{'descr': '|O8', 'fortran_order': False, 'shape': (4,), }", 32)),
             contains("pickled"));
  CHECK_THAT(refusal(made("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (4,), }", 16)),
             contains("structured"));
  CHECK_THAT(refusal(made("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24)),
             contains("Fortran order"));
  CHECK_THAT(refusal(made("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", 24)),
             contains("'<f8'") && contains("'f4' was asked for"));
  CHECK_THAT(refusal<std::uint32_t>(made("{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", 12)),
             contains("'u4' was asked for"));
  CHECK_THAT(refusal(made("{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }", 6)),
             contains("'<f2'"));
  CHECK_THAT(refusal(made("{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (3,), }", 24)),
             contains("<M8[ns]") && contains("not supported"));
  CHECK_THAT(refusal(made("{'descr': '<U3', 'fortran_order': False, 'shape': (3,), }", 36)),
             contains("'<U3'"));
  CHECK_THAT(refusal(made("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4)),
             contains("more than 8 dimensions"));
  CHECK_THAT(refusal(made("", 0, 4)), contains("version 4.0") && contains("offset 6"));
  CHECK_THAT(refusal(codec_test::to_vector("PK\x03\x04 and more of a zip file")),
             contains("not an npy file"));
  CHECK_THAT(refusal({}), contains("not an npy file"));
}

TEST_CASE("codec/npy: a false or damaged header is an error with an offset") {
  using npy_test::made;
  using npy_test::refusal;
  // sizes
  CHECK_THAT(refusal(made("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 23)),
             contains("(2, 3)") && contains("24 bytes, but 23 follow") && contains("offset 69"));
  CHECK_THAT(refusal(made("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 25)),
             contains("but 25 follow"));
  CHECK_THAT(refusal(made("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 0)),
             contains("4 bytes, but 0"));
  CHECK_THAT(refusal(made("{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615,), }", 4)),
             contains("no file can hold"));
  CHECK_THAT(
      refusal(made("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0)),
      contains("no file can hold"));
  CHECK_THAT(
      refusal(made("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775808, 4), }", 0)),
      contains("no file can hold"));
  CHECK_THAT(refusal(made("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 4)),
             contains("offset"));
  // text
  for (const std::string_view bad :
       {"",
        "{",
        "{}",
        "x",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': false, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,),",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f4, 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False 'shape': (1,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': 'f-4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4 ', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': None, 'fortran_order': False, 'shape': (1,)}",
        "{'descr: '<f4'"}) {
    CAPTURE(bad);
    CHECK_THAT(refusal(made(bad, 4)), contains("npy header") && contains("offset"));
  }
  // a header length beyond the file
  byte_vector file = made("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 4, 2);
  file[11] = std::byte{0xff};
  CHECK_THAT(refusal(file), contains("the npy header says it has"));
}

TEST_CASE("codec/npy: a header like the last one is compared, and any other one is read") {
  ps::npy<float>::scratch scratch;
  const auto decoded = [&](const byte_vector& file) {
    const auto array = ps::npy<float>{}.decode(file, scratch);
    const auto view = array.finish();
    return std::pair(array.shape(), std::vector<float>(view.data(), view.data() + view.shape().elements()));
  };
  const auto file = [](const ps::extents& shape, float value) {
    return ps::npy_bytes<float>(shape, std::vector<float>(static_cast<std::size_t>(shape.elements()), value));
  };
  const ps::extents wide(2, 3), high(3, 2), longer(2, 4);
  for (const ps::extents& shape : {wide, wide, high, wide, longer, longer, high})
    for (const float value : {1.0f, 2.0f})
      CHECK(decoded(file(shape, value)) ==
            std::pair(shape, std::vector<float>(static_cast<std::size_t>(shape.elements()), value)));
  // after a good one, every damaged header of the same size gives what it gives by itself
  const byte_vector good = file(wide, 1.0f);
  std::size_t wrong = 0;
  for (std::size_t bit = 0; bit < 128 * 8; ++bit) {
    byte_vector flipped = good;
    flipped[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    static_cast<void>(decoded(good));
    const std::string alone = npy_test::refusal(flipped);
    wrong += caught([&] { static_cast<void>(decoded(flipped)); }).line == alone ? 0 : 1;
  }
  CHECK(wrong == 0);
  const std::string padded =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" + std::string(500, ' ') + "\n";
  for (int i = 0; i < 2; ++i)
    CHECK(decoded(npy_test::made(padded, 24)).first == wide);  // too long to be kept
  CHECK(caught([&] { static_cast<void>(decoded(npy_test::made(padded, 23))); }).code == ps::errc::format);
}

TEST_CASE("codec/npy: every truncated header and every flipped bit gives an array or an error") {
  const std::vector<float> values(6, 1.0f);
  const byte_vector file = ps::npy_bytes<float>(ps::extents(2, 3), values);
  for (std::size_t size = 0; size < file.size(); ++size) {
    // memory of exactly that size, so that a sanitizer sees any access beyond it
    const byte_vector cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE(!npy_test::refusal(cut).empty());
  }
  for (std::size_t bit = 0; bit < 128 * 8; ++bit) {
    byte_vector flipped = file;
    flipped[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    static_cast<void>(npy_test::refusal(flipped));
  }
  ps::rng random(7, 7, 7);
  const std::string_view letters = "{}()[]',:<>|= \n0123456789LTrueFalsdfocpi";
  for (int round = 0; round < 5000; ++round) {
    byte_vector noise = file;
    for (auto n = random.below(6); n > 0; --n)
      noise[10 + random.below(60)] = static_cast<std::byte>(letters[random.below(letters.size())]);
    static_cast<void>(npy_test::refusal(noise));
  }
}

TEST_CASE("codec/npy: allocates nothing once its scratch has grown, and finishes a blob once") {
  const std::vector<float> values(1000, 1.0f);
  byte_vector file = ps::npy_bytes<float>(ps::extents(10, 100), values);
  file.insert(file.begin(), std::byte{});  // misaligned: finish must copy
  const ps::bytes_view input = ps::bytes_view(file).subspan(1);
  ps::npy<float>::scratch scratch;
  std::vector<float> out(1000);
  int reads = 0;
  const auto sample = [&] {
    const codec_test::counted_blob blob{input, &reads};
    const auto array = ps::npy<float>{}.decode(blob, scratch);
    array.write_to(ps::destination(out.data(), array.shape()));
    static_cast<void>(array.finish());
  };
  sample();
  CHECK(reads == 1);
  CHECK(penstock_test::allocations_of([&] {
          for (int i = 0; i < 100; ++i) sample();
        }) == 0);
  CHECK(out == values);
}

TEST_CASE("codec/npy: reads files that numpy wrote") {
  const auto folder = penstock_test::test_data("npy");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no npy: files of numpy are not read");
    return;
  }
  std::size_t read = 0;
  codec_test::each_file(*folder / "dali", [&](const std::string& name, const byte_vector& file) {
    CAPTURE(name);
    const auto header = ps::detail::read_npy_header(file);
    const ps::bytes_view payload = ps::bytes_view(file).subspan(header.data_offset);
    const auto same = [&](const auto& values) {
      if (std::endian::native == std::endian::little)
        CHECK(std::memcmp(values.data(), payload.data(), payload.size()) == 0);
      ++read;
    };
    if (header.descr == "<f4") {
      ps::extents shape;
      const auto landmarks = npy_test::read<float>(file, &shape);
      CHECK(shape == ps::extents(68, 2));
      for (const float x : landmarks) CHECK((x > -10 && x < 10'000));
      same(landmarks);
    } else if (header.descr == "<i2") {
      same(npy_test::read<std::int16_t>(file));
    }
  });
  CHECK(read > 0);
  codec_test::each_file(*folder / "numpy", [](const std::string& name, const byte_vector& file) {
    CAPTURE(name);
    if (name.find("objarr") != std::string::npos) CHECK_THAT(npy_test::refusal(file), contains("pickled"));
  });
  for (const char* const hostile : {"fuzz", "bad"})
    codec_test::each_file(*folder / hostile, [](const std::string&, const byte_vector& file) {
      static_cast<void>(npy_test::refusal(file));
    });
}

TEST_CASE("codec/npy: numpy reads the output of npy_bytes, and vice versa") {
  const std::string python = penstock_test::peer_python();
  if (!penstock_test::have_program("numpy", python + " -c 'import numpy'")) return;
  const penstock_test::temp_dir dir;
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const byte_vector file = ps::npy_bytes<double>(ps::extents(2, 3), values);
  std::ofstream(dir / "ours.npy", std::ios::binary)
      .write(ps::text_of(file).data(), static_cast<std::streamsize>(file.size()));
  const std::string command =
      "cd '" + dir.path().string() + "' && " + python +
      " -c \"import numpy as n; a = n.load('ours.npy'); assert a.tolist() == [[1, 2, 3], [4, 5, "
      "6]]; "
      "n.save('theirs.npy', a); n.save('big.npy', a.astype('>i2')); n.save('scalar.npy', n.float64(7))\"";
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(codec_test::file_bytes(dir / "theirs.npy") == file);
  CHECK(npy_test::read<std::int16_t>(codec_test::file_bytes(dir / "big.npy")) ==
        std::vector<std::int16_t>{1, 2, 3, 4, 5, 6});
  CHECK(npy_test::read<double>(codec_test::file_bytes(dir / "scalar.npy")) == std::vector<double>{7});
}
