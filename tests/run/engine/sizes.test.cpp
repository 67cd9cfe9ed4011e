// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/sizes.hpp>

#include <penstock/codec/integer.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/engine/tuning/tuning.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sizes_test {

namespace ps = penstock;

namespace {

ps::run_options on(unsigned workers, std::optional<std::size_t> depth = std::nullopt) {
  ps::run_options o;
  o.workers = workers;
  o.depth = depth;
  return o;
}

struct machine {
  std::uint64_t sample_bytes = 0;
  bool crowded = false, copies = false;
};
template <class Plan>
ps::run_sizes sizes_of(const Plan& p, const ps::run_options& options, machine m = {}) {
  ps::size_facts facts = ps::size_facts_of(p);
  facts.sample_bytes = m.sample_bytes;
  facts.crowded = m.crowded;
  facts.copies = m.copies;
  return {options, facts};
}
template <class Plan>
constexpr bool plain(const Plan&) {
  return ps::plain_plan<Plan>;
}

/// An image of 3 x 224 x 224 floats that is computed at its destination; the handle is one pointer.
struct lazy_image {
  using unfinished = void;
  using value_type = float;
  static constexpr ps::extents static_shape{3, 224, 224};
  static constexpr std::size_t bytes = 3 * 224 * 224 * sizeof(float);
  std::vector<float>* scratch;

  [[nodiscard]] static constexpr ps::extents shape() { return static_shape; }
  void write_to(float* into) const { std::fill_n(into, bytes / sizeof(float), 1.5f); }
  [[nodiscard]] ps::tensor_view<const float> finish() const {
    scratch->assign(bytes / sizeof(float), 1.5f);
    return {scratch->data(), static_shape};
  }
};
struct to_image {
  using penstock_part = ps::pointwise_tag;
  static constexpr std::string_view stage_name = "to_image";
  using scratch = std::vector<float>;

  template <class V, class Call>
  auto apply(const V&, const Call& call) const {
    return lazy_image{&call.scratch};
  }
};

constexpr auto identity = [](std::uint64_t i) { return i; };
const auto numbers = ps::generated(1000, identity) | ps::batch(16);
const auto words =
    ps::generated(1000, [](std::uint64_t i) { return std::vector<std::uint64_t>(3, i); }) | ps::batch(16);
const auto images_of_numbers = ps::generated(1000, identity) | to_image{} | ps::batch(16);

/// A codec of samples that take long, however few their bytes are.
struct slow_codec {
  static constexpr std::string_view codec_name = "slow";
  static constexpr bool one_at_a_time = true;

  template <ps::byte_element In>
  [[nodiscard]] int decode(const In& in, ps::no_scratch&) const {
    return static_cast<int>(ps::as_bytes(in).size());
  }
};

/// A shard of empty samples.
ps::memory_files shard_of(int samples) {
  std::vector<std::byte> bytes;
  ps::tar_writer out([&bytes](ps::bytes_view more) { bytes.insert(bytes.end(), more.begin(), more.end()); });
  for (int i = 0; i < samples; ++i) out.write(std::to_string(i), {{"cls", std::to_string(i % 10)}});
  out.close();
  return ps::memory_files().add("a.tar", ps::bytes_view(bytes));
}

}  // namespace

TEST_CASE("run/sizes: plans of plain numbers are plain, others are not") {
  CHECK(plain(numbers));
  CHECK_FALSE(plain(words));
  CHECK(sizes_of(numbers, on(1)).grain(100'000) == 65'536 / sizeof(std::uint64_t));
  CHECK(sizes_of(words, on(1)).grain(100'000) == 8);
}

TEST_CASE("run/sizes: an element declared unfinished is not plain, over any source") {
  const auto images = ps::webdataset(shard_of(4)) | to_image{} | ps::batch(2);
  const auto labels = ps::webdataset(shard_of(4)) | ps::map([](const auto&) { return 1; }) | ps::batch(2);
  CHECK_FALSE(plain(images_of_numbers));
  CHECK_FALSE(plain(images));
  CHECK_FALSE(plain(labels));  // reading a sample is more than a number
}

TEST_CASE("run/sizes: the size of a slot is the bytes written there, of all fields") {
  struct six {
    std::uint16_t x, y, z;
  };
  using pair = ps::record<ps::field<"image", lazy_image>, ps::field<"label", std::uint16_t>>;
  CHECK(ps::detail::slot_bytes_of<double> == 8);
  CHECK(ps::detail::slot_bytes_of<six> == 6);
  CHECK(ps::detail::slot_bytes_of<std::array<six, 5>> == 30);
  CHECK(ps::detail::slot_bytes_of<lazy_image> == lazy_image::bytes);
  CHECK(ps::detail::slot_bytes_of<pair> == lazy_image::bytes + 2);
  CHECK(ps::detail::slot_bytes_of<std::vector<float>> == 0);
  CHECK(ps::size_facts_of(images_of_numbers).slot_bytes == lazy_image::bytes);
  CHECK(ps::size_facts_of(images_of_numbers).batch_size == 16);
  const auto rows = ps::generated(10, [](std::uint64_t) { return std::array<std::uint16_t, 3>{}; });
  CHECK(ps::size_facts_of(rows | ps::batch(4)).slot_bytes == 6);
  CHECK(ps::size_facts_of(rows | ps::batch(4, ps::pitched<4096>)).slot_bytes == 4096);
}

TEST_CASE("run/sizes: small batches of numbers share a block, unless a depth or a device counts batches") {
  CHECK(sizes_of(numbers, on(0)).batches_per_block(16) == 16'384 / sizeof(std::uint64_t) / 16);
  CHECK(sizes_of(numbers, on(1), {.crowded = true}).batches_per_block(16) == 256);
  CHECK(sizes_of(numbers, on(1)).batches_per_block(1'000'000) == 1);
  CHECK(sizes_of(numbers, on(1, 3)).batches_per_block(16) == 1);
  CHECK(sizes_of(numbers, on(1), {.copies = true}).batches_per_block(16) == 1);
  CHECK(sizes_of(words, on(1)).batches_per_block(16) == 1);
  const auto mapped = numbers | ps::map_batch([](auto&) {});
  CHECK(ps::size_facts_of(mapped).maps_batches);
  CHECK(sizes_of(mapped, on(1)).batches_per_block(16) == 1);
}

TEST_CASE("run/sizes: a grain is about 32 KB, at most the block, at least one slot") {
  CHECK(sizes_of(words, on(2), {.sample_bytes = 1024}).grain(1000) == 32);
  CHECK(sizes_of(words, on(0), {.sample_bytes = 1024}).grain(1000) == 64);
  CHECK(sizes_of(words, on(2), {.sample_bytes = 1024}).grain(20) == 20);
  CHECK(sizes_of(words, on(2), {.sample_bytes = 1'000'000}).grain(20) == 1);
  CHECK(sizes_of(words, on(2), {.sample_bytes = 1}).grain(1000) == 64);
}

TEST_CASE("run/sizes: the depth is the one requested, or follows the workers") {
  CHECK(sizes_of(words, on(3, 9)).depth(16) == 9);
  CHECK(sizes_of(words, on(3, 1)).depth(16) == 2);
  CHECK(sizes_of(words, on(0)).depth(16) == 2);
  CHECK(sizes_of(words, on(1)).depth(16) == 4);
  // a device computes on one batch while the next is copied and one more is filled
  CHECK(sizes_of(words, on(0), {.copies = true}).depth(16) == 3);
  CHECK(sizes_of(words, on(1), {.copies = true}).depth(16) == 4);
  CHECK(sizes_of(words, on(7), {.copies = true}).depth(16) == 10);
  CHECK(sizes_of(words, on(0, 1), {.copies = true}).depth(16) == 2);
  CHECK(sizes_of(words, on(7)).depth(16) == 10);
  // Where threads share processors: more small blocks than else, the more the smaller they are, and no more
  // bytes than stay in the caches; of large ones as many as else.
  const std::size_t usual = sizes_of(words, on(3), {1024, false}).depth(16);
  const std::size_t small = sizes_of(words, on(3), {1024, true}).depth(16);
  const std::size_t larger = sizes_of(words, on(3), {4096, true}).depth(64);
  CHECK(small > larger);
  CHECK(larger > usual);
  CHECK(larger * 64 * 4096 <= ps::tuning::crowded_bytes);
  CHECK(sizes_of(words, on(3), {1'000'000, true}).depth(16) == usual);
}

TEST_CASE("run/sizes: large slots of small samples count as written, not as handles or files") {
  for (const std::uint64_t file_bytes : {std::uint64_t{0}, std::uint64_t{100}, std::uint64_t{110'000}}) {
    for (const bool crowded : {false, true}) {
      const auto sizes = sizes_of(images_of_numbers, on(2), {file_bytes, crowded});
      CHECK(sizes.batches_per_block(16) == 1);
      CHECK(sizes.grain(16) == 1);
      CHECK(sizes.depth(16) == 5);
      CHECK(sizes.chunk() == 1);
    }
  }
}

TEST_CASE("run/sizes: images are taken one at a time in parts of joined plans, too") {
  const auto files = ps::webdataset(shard_of(4)) | ps::fields<"cls">;
  const auto images = files | ps::decode<slow_codec>;
  const auto others = files | ps::decode<ps::integer>;
  const auto changed = images | ps::map([](auto&& sample) { return sample; });
  const auto grain = [](const auto& p) { return sizes_of(p | ps::batch(16), on(2), {700}).grain(16); };
  CHECK(grain(ps::concat(changed, images)) == 1);
  CHECK(grain(ps::concat(images, images)) == 1);
  CHECK(grain(ps::mix(ps::weights{1, 2}, images, changed)) == 1);
  CHECK(grain(ps::zip<"image", "label">(changed, others)) == 1);
  CHECK(grain(ps::concat(ps::concat(images, changed), images)) == 1);
  CHECK(grain(ps::concat(others, others)) == 16);
  CHECK(grain(ps::zip<"first", "second">(others, others)) == 16);
}

TEST_CASE("run/sizes: images are taken one at a time, however small their files are") {
  const auto photos = ps::webdataset(shard_of(4)) | ps::fields<"cls">;
  const auto images = photos | ps::decode<slow_codec> | ps::batch(16);
  const auto by_name = photos | ps::decode<ps::field<"cls", slow_codec>> |
                       ps::map<"cls">([](auto&&) { return 1; }) | ps::batch(16);
  const auto numbers_of_files = photos | ps::decode<ps::integer> | ps::batch(16);
  for (const std::uint64_t file_bytes : {std::uint64_t{0}, std::uint64_t{700}, std::uint64_t{110'000}}) {
    for (const bool crowded : {false, true}) {
      CHECK(sizes_of(images, on(2), {file_bytes, crowded}).grain(16) == 1);
      CHECK(sizes_of(images, on(2), {file_bytes, crowded}).depth(16) == 5);
      CHECK(sizes_of(by_name, on(2), {file_bytes, crowded}).grain(16) == 1);
    }
  }
  CHECK(sizes_of(numbers_of_files, on(2), {.sample_bytes = 700}).grain(100) == 46);
}

TEST_CASE("run/sizes: a chunk is about 64 KB if sample sizes are known, otherwise 16 slots") {
  const auto odd = ps::generated(1000, identity) | ps::filter([](std::uint64_t i) { return i % 2 != 0; }) |
                   ps::map([](std::uint64_t i) { return std::to_string(i); });
  CHECK(sizes_of(odd, on(1)).chunk() == 16);
  CHECK(sizes_of(odd, on(1), {.sample_bytes = 65'536}).chunk() == 1);
  CHECK(sizes_of(odd, on(1), {.sample_bytes = 16}).chunk() == 64);
}

TEST_CASE("run/sizes: a run of large static images over tar shards holds a few batches and no more") {
  constexpr std::uint64_t batch = 2, batch_bytes = batch * lazy_image::bytes;
  for (const unsigned workers : {0u, 2u}) {
    const auto plan = ps::webdataset(shard_of(8)) | to_image{} | ps::repeat(16) | ps::batch(batch);
    auto run = (plan | ps::workers(workers)).open();
    std::uint64_t batches = 0;
    for (auto&& b : run.epoch(0)) {
      CHECK(b.values().shape() == ps::extents(2, 3, 224, 224));
      CHECK(b.values().data()[batch_bytes / sizeof(float) - 1] == 1.5f);
      CHECK(run.counters().bytes_held <= (workers == 0 ? 2 : workers + 3) * (batch_bytes + 4096));
      ++batches;
    }
    CHECK(batches == 64);
  }
}

}  // namespace sizes_test
