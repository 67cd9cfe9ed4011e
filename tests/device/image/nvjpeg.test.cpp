// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The logic of nvjpeg, with a fake nvJPEG and a fake CUDA that need no GPU.

#include <penstock/device/image/nvjpeg.hpp>

#include "support/catch.hpp"
#include "support/fake_cuda.hpp"
#include "support/fake_nvjpeg.hpp"
#include "support/plain_jpeg.hpp"

#include <penstock/codec/identity.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/core/error.hpp>
#include <penstock/device/cuda.hpp>
#include <penstock/image/crop.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace nvjpeg_test {

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::fake_cuda;
using penstock_test::fake_nvjpeg;
using bytes = std::vector<std::byte>;

/// Fresh fakes; the destructor checks that everything was released exactly once.
struct fresh_fakes {
  fake_cuda& cuda = fake_cuda::get();
  fake_nvjpeg& nvjpeg = fake_nvjpeg::get();
  fresh_fakes() {
    cuda.reset();
    nvjpeg.reset();
  }
  ~fresh_fakes() {
    CHECK(cuda.live() == 0);
    CHECK(nvjpeg.live() == 0);
    CHECK(!cuda.misused);
    CHECK(!nvjpeg.misused);
    cuda.reset();
    nvjpeg.reset();
  }
};

const plain_jpeg::kind colour{.factors = {{2, 2}, {1, 1}, {1, 1}}};
bytes photo(std::uint32_t width, std::uint32_t height, const plain_jpeg::kind& kind = colour) {
  return plain_jpeg::encode({width, height}, kind);
}

/// The middle of a file, as the host's codec and `center_crop` give it; zeros around smaller images.
std::vector<std::uint8_t> middle(const bytes& encoded, const ps::image_size& size) {
  ps::jpeg_scratch scratch;
  ps::image_scratch around;
  const auto image = ps::jpeg{}.decode(ps::bytes_view(encoded), scratch);
  std::vector<std::uint8_t> made(std::size_t{size.width} * size.height * 3);
  const ps::call<ps::image_scratch> call{{}, 0, 0, 0, around};
  ps::center_crop(size.height, size.width)(image, call)
      .write_to(
          ps::destination<std::uint8_t>(made.data(), ps::extents(size.height, size.width, std::size_t{3})));
  return made;
}

/// A stream, and device memory for a batch.
struct place {
  cudaStream_t stream = nullptr;
  std::byte* memory = nullptr;
  explicit place(std::size_t size) {
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    void* made = nullptr;
    REQUIRE(cudaMalloc(&made, size) == cudaSuccess);
    memory = static_cast<std::byte*>(made);
  }
  ~place() {
    cudaStreamDestroy(stream);
    cudaFree(memory);
  }
};

struct files {
  const std::vector<bytes>& all;
  ps::image_size size;
  std::size_t count;
  std::byte* output;
  [[nodiscard]] bool holds(std::size_t i) const { return !all[i].empty(); }
  [[nodiscard]] ps::bytes_view file(std::size_t i) const { return ps::bytes_view(all[i]); }
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> corner(std::size_t, const ps::image_size& image) const {
    return {ps::detail::centre_of(image.width, size.width), ps::detail::centre_of(image.height, size.height)};
  }
};

/// Decodes files a few times, and checks that each image is the middle of its file; one without bytes is
/// black.
void check_decoded(const std::vector<bytes>& all, const ps::detail::nvjpeg_setup& setup,
                   ps::detail::nvjpeg_tally& tally) {
  const std::size_t slot = std::size_t{setup.size.width} * setup.size.height * 3;
  const place there(slot * all.size());
  ps::detail::nvjpeg_decoder<ps::rgb8> decoder(0, setup, tally);
  for (int round = 0; round < 3; ++round) {
    fake_cuda::get().launch(there.stream, [&] { std::memset(there.memory, 0xab, slot * all.size()); });
    decoder.decode(files{all, setup.size, all.size(), there.memory}, there.stream);
    REQUIRE(cudaStreamSynchronize(there.stream) == cudaSuccess);
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO("image " << i << " of round " << round);
      std::vector<std::uint8_t> found(slot);
      std::memcpy(found.data(), there.memory + i * slot, slot);
      CHECK((found == (all[i].empty() ? std::vector<std::uint8_t>(slot) : middle(all[i], setup.size))));
    }
  }
}

TEST_CASE("device/image/nvjpeg: the device decodes the middle of each file") {
  const fresh_fakes fakes;
  std::vector<bytes> all;
  for (std::uint32_t i = 0; i < 20; ++i) all.push_back(photo(48 + i, 70 - i));
  all.push_back(photo(64, 64, {.factors = {{2, 2}, {1, 1}, {1, 1}}, .progressive = true}));
  all.push_back(photo(64, 64, {.factors = {{1, 1}, {1, 1}, {1, 1}}, .restart = 3}));
  for (const unsigned threads : {1u, 3u}) {
    ps::detail::nvjpeg_tally tally;
    check_decoded(all, {.size = {40, 32}, .threads = threads}, tally);
    CHECK(tally.device == 3 * all.size());
    CHECK(tally.host == 0);
    CHECK(tally.engine == 0);
  }
}

TEST_CASE("device/image/nvjpeg: what the device cannot decode, the host decodes, and it is counted") {
  const fresh_fakes fakes;
  fakes.nvjpeg.understands_progressive = false;
  const std::vector<bytes> all{
      photo(64, 64),
      photo(64, 64, {.factors = {{1, 1}, {1, 1}, {1, 1}}, .progressive = true}),  // refused by the library
      photo(64, 64, {.factors = {{1, 1}}}),                                       // gray
      photo(64, 64, {.factors = {{1, 1}, {1, 1}, {1, 1}}, .rgb = true}),
      photo(64, 64, {.factors = {{1, 1}, {1, 1}, {1, 1}, {1, 1}}}),  // YCCK
      photo(64, 64, {.factors = {{1, 1}, {1, 1}, {1, 1}}, .arithmetic = true}),
      photo(39, 64),  // too narrow
      photo(64, 31),  // too low
      bytes{},        // no sample
      photo(40, 32),
  };
  REQUIRE(!all[5].empty());
  for (const unsigned threads : {1u, 3u}) {
    ps::detail::nvjpeg_tally tally;
    check_decoded(all, {.size = {40, 32}, .threads = threads}, tally);
    CHECK(tally.device == 3 * 2);
    CHECK(tally.host == 3 * 7);
    CHECK(tally.bad == 0);
  }
}

TEST_CASE("device/image/nvjpeg: the engine decodes what it can, at once") {
  const fresh_fakes fakes;
  fakes.nvjpeg.has_engine = true;
  std::vector<bytes> all;
  for (std::uint32_t i = 0; i < 9; ++i) all.push_back(photo(50 + i, 70 - i));
  all.push_back(photo(64, 64, {.factors = {{2, 1}, {1, 1}, {1, 1}}, .progressive = true}));
  all.push_back(photo(64, 64, {.factors = {{1, 1}}}));
  all.emplace_back();
  ps::detail::nvjpeg_tally tally;
  check_decoded(all, {.size = {40, 32}, .threads = 2}, tally);
  CHECK(tally.engine == 3 * 9);
  CHECK(tally.device == 3);
  CHECK(tally.host == 3);
  CHECK(fakes.cuda.count["nvjpegDecodeBatchedEx"] == 3);
  CHECK(fakes.cuda.count["nvjpegDecodeBatchedInitialize"] == 1);
  CHECK(fakes.cuda.count["nvjpegDecodeParamsCreate"] == all.size() + 2);

  // an engine that cannot after all
  fakes.nvjpeg.engine_stumbles = true;
  ps::detail::nvjpeg_tally after;
  check_decoded(all, {.size = {40, 32}, .threads = 2}, after);
  CHECK(after.engine == 0);
  CHECK(after.device == 3 * 10);

  // and one that is not asked
  ps::detail::nvjpeg_tally without;
  check_decoded(all, {.size = {40, 32}, .engine = false, .threads = 2}, without);
  CHECK(without.engine == 0);
  CHECK(without.device == 3 * 10);
}

TEST_CASE("device/image/nvjpeg: nothing is allocated in the steady state") {
  const fresh_fakes fakes;
  fakes.nvjpeg.has_engine = true;
  const std::vector<bytes> all{photo(64, 64), photo(30, 64), photo(64, 64, {.factors = {{1, 1}}})};
  const ps::image_size size{40, 32};
  const place there(std::size_t{40} * 32 * 3 * all.size());
  ps::detail::nvjpeg_tally tally;
  ps::detail::nvjpeg_decoder<ps::rgb8> decoder(0, {.size = size}, tally);
  const auto made = [&] {
    std::uint64_t sum = 0;
    for (const auto& [name, times] : fakes.cuda.count)
      if (name.find("Create") != std::string::npos || name.find("Alloc") != std::string::npos) sum += times;
    return sum;
  };
  std::uint64_t before = 0;
  for (int round = 0; round < 4; ++round) {
    if (round == 2) before = made();
    decoder.decode(files{all, size, all.size(), there.memory}, there.stream);
    REQUIRE(cudaStreamSynchronize(there.stream) == cudaSuccess);
  }
  CHECK(made() == before);
}

TEST_CASE("device/image/nvjpeg: a file that nobody can decode is an error with its row, or black") {
  const fresh_fakes fakes;
  bytes cut = photo(64, 64);
  cut.resize(cut.size() / 2);
  const char* const words = "these are not the bytes of a photograph";
  const bytes other(reinterpret_cast<const std::byte*>(words),
                    reinterpret_cast<const std::byte*>(words) + std::strlen(words));
  const std::vector<bytes> all{photo(64, 64), photo(64, 64), other, cut, photo(64, 64)};
  const ps::image_size size{40, 32};
  const std::size_t slot = std::size_t{40} * 32 * 3;
  const place there(slot * all.size());
  for (const unsigned threads : {1u, 3u}) {
    ps::detail::nvjpeg_tally tally;
    ps::detail::nvjpeg_decoder<ps::rgb8> decoder(0, {.size = size, .threads = threads}, tally);
    for (int round = 0; round < 2; ++round) {
      try {
        decoder.decode(files{all, size, all.size(), there.memory}, there.stream);
        FAIL("there was no error");
      } catch (const ps::error& e) {
        CHECK(e.code() == ps::errc::format);
        CHECK_THAT(std::string(e.what()),
                   contains("these bytes are no jpeg file") && contains("in row 2 of its batch"));
      }
    }
    // the decoder still works
    const std::vector<bytes> good{photo(64, 64)};
    decoder.decode(files{good, size, 1, there.memory}, there.stream);
    REQUIRE(cudaStreamSynchronize(there.stream) == cudaSuccess);
    CHECK(std::memcmp(there.memory, middle(good[0], size).data(), slot) == 0);
  }
  ps::detail::nvjpeg_tally tally;
  ps::detail::nvjpeg_decoder<ps::rgb8> decoder(0, {.size = size, .bad_is_black = true}, tally);
  decoder.decode(files{all, size, all.size(), there.memory}, there.stream);
  REQUIRE(cudaStreamSynchronize(there.stream) == cudaSuccess);
  CHECK(tally.bad == 2);
  const std::vector<std::uint8_t> black(slot);
  for (const std::size_t i : {0u, 1u, 4u})
    CHECK(std::memcmp(there.memory + i * slot, middle(all[i], size).data(), slot) == 0);
  for (const std::size_t i : {2u, 3u}) CHECK(std::memcmp(there.memory + i * slot, black.data(), slot) == 0);
}

TEST_CASE("device/image/nvjpeg: whichever call fails, there is one error and nothing is left behind") {
  const fresh_fakes fakes;
  const std::vector<bytes> all{photo(64, 64), photo(30, 64), photo(64, 64), bytes{}};
  const ps::image_size size{40, 32};
  const std::size_t slot = std::size_t{40} * 32 * 3;
  for (const bool engine : {false, true}) {
    fakes.nvjpeg.has_engine = engine;
    std::uint64_t failed = 0;
    for (std::uint64_t n = 1;; ++n) {
      REQUIRE(fakes.cuda.live() == 0);
      std::string what;
      {
        const place there(slot * all.size());
        fakes.cuda.calls = 0;
        fakes.cuda.fail_at = n;
        ps::detail::nvjpeg_tally tally;
        try {
          ps::detail::nvjpeg_decoder<ps::rgb8> decoder(0, {.size = size}, tally);
          for (int round = 0; round < 2; ++round)
            decoder.decode(files{all, size, all.size(), there.memory}, there.stream);
        } catch (const ps::error& e) {
          what = e.what();
          CHECK(e.code() == ps::errc::io);
        }
        const bool all_done = fakes.cuda.calls < n;
        fakes.cuda.fail_at = 0;
        if (what.empty() && all_done) break;
      }
      REQUIRE(fakes.nvjpeg.live() == 0);
      if (what.empty()) continue;  // failed while releasing, which cannot be reported
      CHECK_THAT(what, contains("failed with"));
      CHECK(fakes.cuda.last == cudaSuccess);
      ++failed;
    }
    CHECK(failed > 40);
  }
}

TEST_CASE("device/image/nvjpeg: errors of the library say what to do") {
  const fresh_fakes fakes;
  const auto message = [&](nvjpegStatus_t code) -> std::string {
    fakes.nvjpeg.fail_with = code;
    fakes.cuda.calls = 0;
    for (std::uint64_t n = 1; n < 9; ++n) {
      fakes.cuda.calls = 0;
      fakes.cuda.fail_at = n;
      try {
        ps::detail::nvjpeg_tally tally;
        const ps::detail::nvjpeg_decoder<ps::rgb8> decoder(0, {.size = {8, 8}}, tally);
      } catch (const ps::error& e) {
        if (std::string(e.what()).find("nvJPEG") != std::string::npos) return e.what();
      }
    }
    return "";
  };
  CHECK_THAT(message(NVJPEG_STATUS_NOT_INITIALIZED),
             contains("opening nvJPEG failed with NVJPEG_STATUS_NOT_INITIALIZED") && contains("nvidia-smi"));
  CHECK_THAT(message(NVJPEG_STATUS_ALLOCATOR_FAILURE),
             contains("NVJPEG_STATUS_ALLOCATOR_FAILURE") && contains("lower prefetch(n)"));
  CHECK_THAT(message(NVJPEG_STATUS_ARCH_MISMATCH), contains("install the nvJPEG of this CUDA version"));
}

using sample = ps::record<ps::field<"jpg", bytes>, ps::field<"label", int>>;

/// Files of many sizes and kinds, as samples.
sample made_up(std::uint64_t i) {
  const auto n = static_cast<std::uint32_t>(i);
  plain_jpeg::kind kind = colour;
  kind.progressive = i % 3 == 1;
  const bytes encoded = i % 7 == 3 ? photo(60, 50, {.factors = {{1, 1}}}) : photo(41 + n, 70 - n, kind);
  return sample(encoded, static_cast<int>(i));
}

/// What kernels on the device's stream see of all batches, and what the host has of labels.
template <class Plan>
std::vector<std::uint8_t> seen_by_kernels(const Plan& plan, cudaStream_t stream) {
  std::vector<std::uint8_t> seen;
  auto run = plan.open();
  for (auto epoch : run.epochs(2)) {
    for (auto&& b : epoch) {
      const auto made = ps::device_view<"jpg">(b);
      REQUIRE(made.shape() == ps::extents(b.size(), std::size_t{32}, std::size_t{40}, std::size_t{3}));
      fake_cuda::get().launch(
          stream, [&seen, made] { seen.insert(seen.end(), made.data(), made.data() + made.size()); });
    }
  }
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  return seen;
}
template <class Plan>
std::vector<std::uint8_t> seen_on_host(const Plan& plan) {
  std::vector<std::uint8_t> seen;
  auto run = plan.open();
  for (auto epoch : run.epochs(2))
    for (auto&& b : epoch) {
      const auto images = ps::get<"jpg">(b);
      seen.insert(seen.end(), images.data(), images.data() + images.shape().elements());
    }
  return seen;
}

/// The header's example.
template <class Records>
auto example(const Records& records) {
  const auto pixels = ps::nvjpeg(ps::random_crop(224), {.threads = 4});
  auto loader = records | ps::decode<ps::field<"jpg", ps::identity>> |
                ps::batch(256, ps::collate<"jpg">(ps::ragged)) | ps::pin_and_copy(ps::cuda{}) |
                ps::on_device<"jpg">(pixels);
  return loader;
}
static_assert(ps::elastic<decltype(example(ps::generated(1, made_up)))>);

// Images that were decoded already.
template <class View>
using wrong_for =
    typename ps::detail::device_check<View, ps::light_tuple<decltype(ps::nvjpeg(ps::center_crop(8)))>>::wrong;
static_assert(std::is_same_v<wrong_for<ps::tensor_view<std::uint8_t>>, ps::mistakes::nvjpeg_wants_files>);
static_assert(
    std::is_same_v<wrong_for<ps::basic_ragged_view<std::uint16_t>>, ps::mistakes::nvjpeg_wants_files>);
static_assert(std::is_same_v<wrong_for<ps::basic_ragged_view<std::byte>>, ps::mistakes::none>);

TEST_CASE("device/image/nvjpeg: a pipeline's batches are those of the host, whoever decodes them") {
  const fresh_fakes fakes;
  const auto samples = ps::generated(23, made_up) | ps::shuffle(ps::seed(5));
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  const auto compare = [&](const auto& crop) {
    const auto expected =
        seen_on_host(samples | ps::decode<ps::field<"jpg", ps::jpeg>> | ps::map<"jpg">(crop) | ps::batch(5));
    for (const bool engine : {false, true}) {
      fakes.nvjpeg.has_engine = engine;
      for (const unsigned threads : {0u, 2u}) {
        const auto pixels = ps::nvjpeg(crop, {.threads = 1 + threads});
        const auto plan = samples | ps::workers(threads) | ps::batch(5, ps::collate<"jpg">(ps::ragged)) |
                          ps::prefetch(3) | ps::pin_and_copy(ps::cuda{.stream = stream}) |
                          ps::on_device<"jpg">(pixels);
        CHECK(seen_by_kernels(plan, stream) == expected);
        const ps::nvjpeg_counts counts = pixels.counts();
        CHECK(counts.engine + counts.device + counts.host == 46);
        CHECK((counts.engine != 0) == engine);
        CHECK(counts.device != 0);
        CHECK(counts.host != 0);
      }
    }
  };
  compare(ps::center_crop(32, 40));
  compare(ps::random_crop(32, 40));
  compare(ps::random_crop(32, 40, {.padding = 4, .fill = 7}));
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("device/image/nvjpeg: gray images, and a last batch that is padded") {
  const fresh_fakes fakes;
  const auto files = ps::generated(5, [](std::uint64_t i) { return made_up(i); });
  const auto encoded = files | ps::batch(4, ps::tail::pad, ps::collate<"jpg">(ps::ragged)) |
                       ps::pin_and_copy(ps::cuda{.wait = ps::cuda_wait::host}) |
                       ps::on_device<"jpg">(ps::nvjpeg<ps::gray8>(ps::center_crop(16)));
  const auto decoded = files | ps::decode<ps::field<"jpg", ps::jpeg_as<ps::gray8>>> |
                       ps::map<"jpg">(ps::center_crop(16)) | ps::batch(4, ps::tail::pad);
  std::vector<std::uint8_t> device, host;
  for (auto&& b : encoded) {
    const auto made = ps::device_view<"jpg">(b);
    CHECK(made.shape() == ps::extents(std::size_t{4}, std::size_t{16}, std::size_t{16}, std::size_t{1}));
    device.insert(device.end(), made.data(), made.data() + made.size());
  }
  for (auto&& b : decoded) {
    const auto images = ps::get<"jpg">(b);
    host.insert(host.end(), images.data(), images.data() + images.shape().elements());
  }
  CHECK(device == host);
}

TEST_CASE("device/image/nvjpeg: a damaged file ends the run at its batch, and a failed call too") {
  const fresh_fakes fakes;
  std::vector<bytes> all(6, photo(64, 64));
  all[4].resize(all[4].size() / 3);
  const auto plan = ps::from(all) | ps::workers(0) | ps::batch(2, ps::ragged) | ps::pin_and_copy(ps::cuda{}) |
                    ps::on_device(ps::nvjpeg(ps::center_crop(32)));
  int before = 0;
  std::string what;
  try {
    for (auto&& b : plan) before += static_cast<int>(b.size());
  } catch (const ps::error& e) {
    what = e.what();
    CHECK(e.code() == ps::errc::format);
  }
  CHECK(before == 4);
  CHECK_THAT(what, contains("truncated") && contains("in row 0 of its batch") && contains("stage on_device"));

  all[4] = all[0];
  const auto good = ps::from(all) | ps::workers(0) | ps::batch(2, ps::ragged) |
                    ps::pin_and_copy(ps::cuda{.device = 1}) |
                    ps::on_device(ps::nvjpeg(ps::center_crop(32), {.threads = 1}));
  for (const bool stays : {false, true}) {  // after one failure, every call fails
    std::uint64_t failed = 0;
    for (std::uint64_t n = 1;; ++n) {
      fakes.cuda.stays = stays;
      fakes.cuda.calls = 0;
      fakes.cuda.fail_at = n;
      what.clear();
      try {
        for (auto&& b : good) CHECK(b.size() == 2);
      } catch (const ps::error& e) {
        what = e.what();
        CHECK(e.code() == ps::errc::io);
      }
      fakes.cuda.stays = false;
      fakes.cuda.stuck = fakes.cuda.last = cudaSuccess;
      REQUIRE(fakes.cuda.live() == 0);
      REQUIRE(fakes.nvjpeg.live() == 0);
      if (stays) fake_cuda::current() = 0;  // nobody could restore it
      REQUIRE(fake_cuda::current() == 0);
      if (what.empty()) {
        if (fakes.cuda.calls < n) break;
        continue;  // failed while releasing, which cannot be reported
      }
      CHECK_THAT(what, contains("failed with"));
      ++failed;
    }
    CHECK(failed > 80);
  }
}

TEST_CASE("device/image/nvjpeg: it says where images are decoded") {
  const fresh_fakes fakes;
  fakes.nvjpeg.has_engine = true;
  const auto pixels = ps::nvjpeg(ps::center_crop(16), {.threads = 3});
  CHECK(pixels.describe() ==
        "nvjpeg(center_crop(16, 16)): the device's JPEG engine if it has one, and 3 threads for the Huffman "
        "code");
  const std::vector<bytes> all(2, photo(64, 64));
  for (auto&& b :
       ps::from(all) | ps::batch(2, ps::ragged) | ps::pin_and_copy(ps::cuda{}) | ps::on_device(pixels))
    CHECK(b.size() == 2);
  CHECK(pixels.describe() ==
        "nvjpeg(center_crop(16, 16)): the device's JPEG engine, and 3 threads for the Huffman code");
  CHECK(ps::nvjpeg(ps::random_crop(16, 8), {.threads = 3, .engine = false}).describe() ==
        "nvjpeg(random_crop(16, 8)): 3 threads for the Huffman code");
}

}  // namespace nvjpeg_test
