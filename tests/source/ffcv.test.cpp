// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/ffcv.hpp>

#include <penstock/codec/ffcv_image.hpp>
#include <penstock/codec/identity.hpp>
#include <penstock/codec/mds_array.hpp>
#include <penstock/codec/raw_number.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/ffcv_files.hpp"
#include "support/resume_test.hpp"
#include "support/temp_dir.hpp"

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using penstock_test::ffcv_writer;

static_assert(ps::indexed_source<ps::ffcv_source<ps::file>> &&
              ps::projecting_source<ps::ffcv_source<ps::file>>);
static_assert(ps::open_sample<ps::ffcv_source<ps::file>::element>);

namespace ffcv_test {

bool mentions(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

constexpr std::uint64_t count = 41;

/// What a run hands out owns its values where they would not last.
template <class T>
decltype(auto) seen(const T& value) {
  if constexpr (requires { value.view(); })
    return value.view();
  else
    return value;
}

/// Takes the place of a codec of JPEG: one pixel if the bytes are some, from the first to the last.
struct stub_jpeg {
  static constexpr std::string_view codec_name = "stub_jpeg";
  static constexpr std::string_view extensions[] = {"jpg"};
  using scratch = ps::image_scratch;
  static bool recognises(ps::bytes_view) { return true; }
  template <ps::byte_element Bytes>
  ps::raw_image<ps::rgb8> decode(const Bytes& in, scratch& s) const {
    const std::string_view bytes = ps::text_of(ps::as_bytes(in));
    if (!bytes.starts_with("\xff\xd8") || !bytes.ends_with("\xff\xd9"))
      throw ps::error(ps::errc::format, "these are not the bytes of a JPEG");
    return {s, ps::bytes_of(bytes.substr(0, 3)), ps::image_size{1, 1}, false};
  }
};

ffcv_writer writer() {
  return ffcv_writer({{2, "image"},
                      {1, "label"},
                      {0, "weight"},
                      {3, "bytes"},
                      {4, "array", ffcv_writer::array({2, 3}, "<f4")},
                      {6, "tensor", ffcv_writer::array({4}, "|u1")},
                      {5, "a_name_of_16_chr"}});
}

std::string pixels(std::uint64_t i) { return std::string((i % 3 + 1) * 2 * 3, static_cast<char>('a' + i)); }

std::string whole_file(std::uint64_t samples = count) {
  std::vector<ffcv_writer::sample> all;
  for (std::uint64_t i = 0; i < samples; ++i) {
    std::string array;
    for (int k = 0; k < 6; ++k) array += ffcv_writer::number(std::uint32_t{0x3f800000});  // 1.0f
    all.push_back({ffcv_writer::image(true, static_cast<std::uint16_t>(i % 3 + 1), 2, pixels(i)),
                   ffcv_writer::number(i), ffcv_writer::real(static_cast<double>(i) / 2),
                   std::string(i % 4 == 3 ? 700000 : i % 4, 'x'), array, std::string(4, static_cast<char>(i)),
                   "{\"i\": " + std::to_string(i) + "}"});
  }
  return writer().file(all);
}

/// What is wrong with the values of a dataset; empty: nothing.
template <class Source>
std::string faults(const Source& source, std::size_t workers) {
  auto run =
      (source |
       ps::decode<ps::field<"image", ps::ffcv_image<>>, ps::field<"label", ps::raw_number<std::int64_t>>,
                  ps::field<"weight", ps::raw_number<double>>, ps::field<"bytes", ps::identity>,
                  ps::field<"array", ps::mds_array<float>>, ps::field<"tensor", ps::mds_array<std::uint8_t>>,
                  ps::field<"a_name_of_16_chr", ps::text>> |
       ps::workers(workers))
          .open();
  std::uint64_t i = 0;
  std::string wrong;
  for (auto&& s : run) {
    const auto image = seen(ps::get<"image">(s));
    const bool good =
        image.shape() == ps::extents(2, i % 3 + 1, 3) && image(0, 0, 0) == 'a' + i &&
        image(1, 0, 2) == 'a' + i && ps::get<"label">(s) == static_cast<std::int64_t>(i) &&
        ps::get<"weight">(s) == static_cast<double>(i) / 2 &&
        seen(ps::get<"bytes">(s)).size() == (i % 4 == 3 ? 700000 : i % 4) &&
        seen(ps::get<"array">(s)).shape() == ps::extents(2, 3) && seen(ps::get<"array">(s))(1, 2) == 1.0f &&
        seen(ps::get<"tensor">(s))(3) == i &&
        std::string_view(ps::get<"a_name_of_16_chr">(s)) == "{\"i\": " + std::to_string(i) + "}";
    if (!good) wrong += std::to_string(i) + " ";
    ++i;
  }
  return i == source.size() ? wrong : "another number of samples";
}

std::string ffcv_outcome(std::string_view bytes) {
  try {
    const auto source = ps::ffcv(ps::memory_files().add_view("x.beton", ps::bytes_of(bytes)));
    return faults(source, 0);
  } catch (const ps::error& e) {
    return e.what();
  }
}

}  // namespace ffcv_test

using namespace ffcv_test;

TEST_CASE("source/ffcv: every type of field, over every storage and with any workers") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x.beton").string(), bytes = whole_file();
  std::ofstream(path, std::ios::binary) << bytes;
  CHECK(mentions(ps::ffcv(path).describe(),
                 "41 samples of image (image), label (int64), weight (float64), bytes (bytes), array "
                 "(ndarray:float32:2,3), tensor (ndarray:uint8:4), a_name_of_16_chr (json)"));
  for (const std::size_t workers : {0u, 1u, 2u, 7u}) {
    CHECK(faults(ps::ffcv(path), workers).empty());
    CHECK(faults(ps::ffcv(ps::mapped_file(path)), workers).empty());
    const auto memory = ps::memory_files().add("x.beton", bytes);
    CHECK(faults(ps::ffcv(ps::simulated_storage(memory, {.latency = std::chrono::microseconds(1)})), workers)
              .empty());
  }
  const ps::simulated_storage counted(ps::memory_files().add("x.beton", bytes), {});
  const auto source = ps::ffcv(counted);
  const std::uint64_t opened = counted.bytes();
  auto labels = (source | ps::decode<ps::field<"label", ps::raw_number<std::int64_t>>>).open();
  for (auto&& one : labels) (void)one;
  CHECK(counted.bytes() == opened);  // labels lie in rows
}

TEST_CASE("source/ffcv: a run resumes at every step, on other numbers of workers and ranks") {
  const penstock_test::temp_dir dir;
  for (int i = 0; i < 2; ++i)
    std::ofstream(dir / (std::to_string(i) + ".beton"), std::ios::binary) << whole_file(15);
  const auto samples = [&] {
    return ps::ffcv((dir / "{0..1}.beton").string()) |
           ps::decode<ps::field<"label", ps::raw_number<std::int64_t>>,
                      ps::field<"tensor", ps::mds_array<std::uint8_t>>> |
           ps::map([](const auto& s) {
             return static_cast<std::uint64_t>(ps::get<"label">(s)) + seen(ps::get<"tensor">(s))(0);
           });
  };
  engine_test::check_all_stops(samples() | ps::shuffle(ps::seed(3)) | ps::batch(4));
  engine_test::check_elastic(
      [&](std::uint64_t rank, std::uint64_t world, std::uint64_t each) {
        return samples() | ps::shuffle(ps::seed(5)) | ps::shard(rank, world) | ps::batch(each);
      },
      6, 2, 3, 1);
}

TEST_CASE("source/ffcv: the examples in headers") {
  using namespace penstock;
  const penstock_test::temp_dir dir;
  const std::string bytes = whole_file(6);
  const auto source = ffcv(memory_files().add("train.beton", bytes));
  CHECK(source.size() == 6);
  CHECK(*source.starts() == std::vector<std::uint64_t>{0, 6});
  CHECK(source.connect().key(5) == "train.beton:5");
  CHECK(source.fingerprint() == ffcv(memory_files().add("train.beton", bytes)).fingerprint());
  CHECK(source.fingerprint() != ffcv(memory_files().add("train.beton", whole_file(7))).fingerprint());
}

TEST_CASE("source/ffcv: an image may lie where an empty value does") {
  const ffcv_writer two({{3, "bytes"}, {2, "image"}, {3, "more"}});
  std::vector<ffcv_writer::sample> all;
  for (std::uint64_t i = 0; i < 9; ++i)
    all.push_back({std::string(i % 2, 'x'), ffcv_writer::image(true, 1, 2, "abcdef"), ""});
  const auto source = ps::ffcv(ps::memory_files().add("x.beton", two.file(all)));
  auto run =
      (source | ps::decode<ps::field<"image", ps::ffcv_image<>>, ps::field<"bytes", ps::identity>>).open();
  std::uint64_t i = 0;
  for (auto&& s : run) {
    CHECK(seen(ps::get<"image">(s))(1, 0, 2) == 'f');
    CHECK(seen(ps::get<"bytes">(s)).size() == i++ % 2);
  }
  CHECK(i == 9);
}

TEST_CASE("source/ffcv: faults are one sentence with the place") {
  const std::string good = whole_file(5);
  CHECK(ffcv_outcome(good).empty());
  const auto with = [&](std::size_t at, std::string_view bytes) {
    std::string changed = good;
    changed.replace(at, bytes.size(), bytes);
    return ffcv_outcome(changed);
  };
  using w = ffcv_writer;
  CHECK(mentions(with(0, w::number(std::uint16_t{1})), "not of version 2: its version is 1"));
  CHECK(mentions(with(4, w::number(std::uint32_t{4096})),
                 "its pages have 4096 bytes [file x.beton, offset 0]"));
  CHECK(mentions(with(16, w::number(std::uint64_t{0})), "the file was never completed"));
  CHECK(mentions(with(8, w::number(std::uint64_t{1} << 60)), "the file ends within the rows of its"));
  CHECK(mentions(with(2, w::number(std::uint16_t{60000})),
                 "the file ends within the descriptions of its 60000"));
  CHECK(mentions(with(24 + 1041, "\xff"), "the field 'label' is of FFCV's type 255"));
  CHECK(mentions(ffcv_outcome(good.substr(0, good.size() - 3)), "it is cut off"));
  CHECK(mentions(ffcv_outcome("2"), "the file has 1 bytes"));
  const std::size_t rows = 24 + 7 * 1041;
  CHECK(mentions(with(rows, "\2"), "the image 'image' is of mode 2"));
  CHECK(mentions(with(rows + 1, "\7"), "the image 'image' of 7 by 2 has 6 bytes"));
  CHECK(
      mentions(with(rows + 5, w::number(std::uint64_t{77})), "the table of values does not have the image"));
  const std::string jpeg = with(rows, std::string_view("\0", 1));
  CHECK(mentions(jpeg, "the image is a JPEG: write ffcv_image<jpeg>, and link penstock::jpeg"));
  CHECK(mentions(jpeg, "x.beton:0"));
  // bytes are at 32 in a row: image 13, label at 16, weight at 24
  CHECK(mentions(with(rows + 32, w::number(~std::uint64_t{0})), "the value of the field 'bytes' goes from"));
  CHECK(mentions(with(rows + 40, w::number(~std::uint64_t{0})), "the value of the field 'bytes' goes from"));

  const auto source = ps::ffcv(ps::memory_files().add("x.beton", good));
  const auto decoded = [&](const auto& stage) -> std::string {
    try {
      auto run = (source | stage).open();
      for (auto&& one : run) (void)one;
    } catch (const ps::error& e) {
      return e.what();
    }
    return "none";
  };
  CHECK(mentions(
      decoded(ps::decode<ps::field<"label", ps::identity>>),
      "the field 'label' is of type int64, which identity does not read: use raw_number<std::int64_t>"));
  CHECK(mentions(decoded(ps::decode<ps::field<"label", ps::raw_number<double>>>), "int64"));
  CHECK(mentions(decoded(ps::decode<ps::field<"array", ps::mds_array<double>>>), "float32"));
  CHECK(mentions(decoded(ps::decode<ps::field<"image", ps::text>>), "use ffcv_image<jpeg>"));
  std::string packed = good;
  packed[rows] = 0;
  auto run = (ps::ffcv(ps::memory_files().add("x", packed)) |
              ps::decode<ps::field<"image", ps::ffcv_image<stub_jpeg>>>)
                 .open();
  CHECK_THROWS_WITH(run.epoch(0).begin(), Catch::Contains("these are not the bytes of a JPEG"));
  std::string other = good;
  other[24 + 1041 + 1] = 'L';
  CHECK_THROWS_WITH(ps::ffcv(ps::memory_files().add("x", good).add("y", other)),
                    Catch::Contains("the file has other fields than the first one, 'x'"));
}

TEST_CASE("source/ffcv: files that are cut off or damaged are an error, or samples") {
  const std::string good = whole_file(5);
  for (std::size_t size = 0; size < good.size(); size += size < 8000 ? 61 : 90001)
    CHECK(mentions(ffcv_outcome(good.substr(0, size)), "penstock:"));
  ps::rng random(1, 2, 3);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = good;
    // where there is something: in front of the pages, and in the table
    const std::size_t front = 24 + 7 * 1041 + 5 * 88, table = 5 * 6 * 24;
    const auto at = static_cast<std::size_t>(random.below(front + table));
    char& byte = damaged[at < front ? at : good.size() - 1 - (at - front)];
    byte = static_cast<char>(byte ^ (1 << random.below(8)));
    (void)ffcv_outcome(damaged);
  }
}
