// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows 21: photos in tar shards, page cache warm, to normalised float32 batches of random crops of 224 x 224,
// channels first; against loops by hand over libjpeg-turbo with the same crops, and against other loaders.
// The photos are those of $PENSTOCK_TEST_DATA/photos.

#include "support/folder.hpp"
#include "support/harness.hpp"
#include "support/raw_image.hpp"

#include <penstock/codec/jpeg.hpp>
#include <penstock/image.hpp>
#include <penstock/run.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage.hpp>

#include <cstdio>

#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

// What is allocated is counted where C libraries allocate too: glibc lets a program replace these.
std::atomic<std::uint64_t> allocations{0};
#ifdef __GLIBC__
extern "C" {
void* __libc_malloc(std::size_t size) noexcept;
void* __libc_calloc(std::size_t count, std::size_t size) noexcept;
void* __libc_realloc(void* old, std::size_t size) noexcept;
void* __libc_memalign(std::size_t alignment, std::size_t size) noexcept;
void* malloc(std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept { return memalign(alignment, size); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) noexcept {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}
constexpr bool allocations_are_counted = true;
#else
constexpr bool allocations_are_counted = false;
#endif

namespace ps = penstock;

namespace {

constexpr std::uint32_t side = 224;
constexpr std::size_t batch_size = 32, image_values = 3 * side * side;
constexpr std::uint64_t seed = 7;

[[noreturn]] void fail_in_jpeg(j_common_ptr) { std::abort(); }

/// What one thread of a loop by hand needs: a decompressor, and memory for each step.
class hand {
 public:
  hand() {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = fail_in_jpeg;
    jpeg_create_decompress(&jpeg_);
  }
  hand(const hand&) = delete;
  hand& operator=(const hand&) = delete;
  ~hand() { jpeg_destroy_decompress(&jpeg_); }

  /// The crop of sample `i` of an epoch, as the pipeline draws it; reads the header.
  ps::image_part begin(ps::bytes_view file, std::uint64_t epoch, std::uint64_t i) {
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&jpeg_, TRUE);
    jpeg_.out_color_space = JCS_RGB;
    ps::rng random(seed, epoch, i, key_.hash);
    ps::rng second(seed, epoch, i, ps::mix64(ps::mix64(key_.hash) + 1));
    mirrored_ = second.chance(0.5);
    return crop_.choose({jpeg_.image_width, jpeg_.image_height}, random);
  }
  /// The pixels of the crop, without those around it.
  ps::pixel_view<std::uint8_t, 3> decode_part(const ps::image_part& part) {
    jpeg_start_decompress(&jpeg_);
    JDIMENSION x = part.x, width = part.width;
    jpeg_crop_scanline(&jpeg_, &x, &width);
    if (part.y != 0) jpeg_skip_scanlines(&jpeg_, part.y);
    rows(width, part.height);
    jpeg_abort_decompress(&jpeg_);
    return {reinterpret_cast<const std::uint8_t*>(pixels_.data()) + (part.x - x) * 3, part.size(),
            std::size_t{width} * 3};
  }
  /// The pixels of the crop, of all of the image.
  ps::pixel_view<std::uint8_t, 3> decode_whole(const ps::image_part& part) {
    jpeg_start_decompress(&jpeg_);
    rows(jpeg_.output_width, jpeg_.output_height);
    const ps::image_size all{jpeg_.output_width, jpeg_.output_height};
    jpeg_finish_decompress(&jpeg_);
    return ps::pixel_view<std::uint8_t, 3>(reinterpret_cast<const std::uint8_t*>(pixels_.data()), all)
        .part(part);
  }
  /// Resizes, mirrors and normalises into a slot, channels first.
  void finish(const ps::pixel_view<std::uint8_t, 3>& pixels, float* slot) {
    const auto with = [&](ps::image_scratch& s) { return ps::call<ps::image_scratch>{{}, 0, 0, 0, s}; };
    const auto resized = resize_(bench::raw_image(pixels, scratch_[0]), with(scratch_[1]));
    const ps::destination<float> into(slot, ps::extents(3, side, side));
    if (mirrored_)
      ps::to_chw()(normal_(mirror_(resized, with(scratch_[2])), with(scratch_[3])), with(scratch_[4]))
          .write_to(into);
    else
      ps::to_chw()(normal_(resized, with(scratch_[3])), with(scratch_[4])).write_to(into);
  }

 private:
  void rows(std::uint32_t width, std::uint32_t height) {
    const std::size_t row_bytes = std::size_t{width} * 3;
    auto* const pixels = ps::room_for<std::uint8_t>(pixels_, row_bytes * height);
    for (std::uint32_t y = 0; y < height;) {
      std::array<JSAMPROW, 8> list{};
      const std::uint32_t n = std::min<std::uint32_t>(8, height - y);
      for (std::uint32_t i = 0; i < n; ++i) list[i] = pixels + (y + i) * row_bytes;
      y += jpeg_read_scanlines(&jpeg_, list.data(), n);
    }
  }

  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  ps::buffer pixels_;
  std::array<ps::image_scratch, 5> scratch_;
  bool mirrored_ = false;
  ps::key key_{"crop"};
  ps::random_resized_crop_operation crop_ = ps::random_resized_crop(side);
  decltype(ps::resize(side, side)) resize_ = ps::resize(side, side);
  decltype(ps::horizontal_flip(1)) mirror_ = ps::horizontal_flip(1);
  decltype(ps::normalize(ps::imagenet)) normal_ = ps::normalize(ps::imagenet);
};

/// Whether a JPEG file's chroma has all its pixels, by its frame header.
bool is_444(ps::bytes_view file) {
  for (std::size_t at = 2; at + 9 < file.size();) {
    const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(file[at + i]); };
    if (byte(0) != 0xff) return false;
    const unsigned marker = byte(1);
    if (marker >= 0xc0 && marker <= 0xc2) return at + 12 < file.size() && byte(11) == 0x11;
    at += 2 + byte(2) * 256 + byte(3);
  }
  return false;
}

std::string photo_folder() {
  const char* given = std::getenv("PENSTOCK_TEST_DATA");
  return std::string(given != nullptr ? given : "../shared/data") + "/photos";
}

/// The number that a program prints, and the word behind it; 0 if it failed.
double rate_of_program(const std::string& command, std::string& version) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  double rate = 0;
  char word[32] = "";
  const bool good = pipe != nullptr && std::fscanf(pipe, "%lf %31s", &rate, word) == 2;
  version = word;
  if (pipe != nullptr) ::pclose(pipe);
  return good && rate > 0 ? rate : 0;
}

auto plan_of(const std::vector<std::string>& names, unsigned workers, const ps::jpeg& codec = {}) {
  return ps::webdataset(names) | ps::fields<"jpg"> | ps::decode<ps::field<"jpg", ps::jpeg>>(codec) |
         ps::map<"jpg">(ps::random_resized_crop(side), ps::horizontal_flip(), ps::normalize(ps::imagenet),
                        ps::to_chw(), ps::key("crop")) |
         ps::seed(seed) | ps::batch(batch_size, ps::tail::drop) | ps::workers(workers);
}

/// Another loader, as bench/images/peer_images.py sets it up: its name there, and the variable that says
/// which Python has it.
struct peer {
  bench::row row;
  const char* name;
  const char* python;
  ps::jpeg ours{};
};

void compare_with_peers(const bench::options& o, const std::vector<std::string>& names,
                        const std::string& scratch) {
  const std::array<peer, 5> peers{{
      {{"21e", "2 workers / PyTorch DataLoader, torchvision on PIL, 2 workers", 3.0},
       "torch",
       "BENCH_TORCHVISION_PYTHON"},
      {{"21l", "2 workers, dct_scaling / PyTorch as in 21e", 3.5},
       "torch",
       "BENCH_TORCHVISION_PYTHON",
       {.dct_scaling = true}},
      {{"21h", "2 workers / DALI on the CPU, 2 threads", 1.7}, "dali", "BENCH_DALI_PYTHON"},
      {{"21i", "2 workers / FFCV, its own file, 2 threads", 1.5}, "ffcv", "BENCH_FFCV_PYTHON"},
      {{"21j", "2 workers / tf.data, 2 threads", 1.7}, "tf", "BENCH_TF_PYTHON"},
  }};
  const char* script = std::getenv("BENCH_IMAGES_SCRIPT");
  std::vector<std::string> four_times;
  for (int i = 0; i < 4; ++i) four_times.insert(four_times.end(), names.begin(), names.end());
  for (const peer& p : peers) {
    if (!o.wants(p.row.id)) continue;
    const char* python = std::getenv(p.python);
    if (python == nullptr || script == nullptr) {
      bench::print_skipped(p.row, "bench/run.sh installs it and says where it is");
      continue;
    }
    std::string command(python);
    for (const std::string& word : {std::string(script), std::string(p.name), photo_folder(), scratch})
      command += " '" + word + "'";
    std::vector<double> ratios, ours, theirs;
    std::string version;
    auto run = plan_of(four_times, 2, p.ours).open();
    std::uint64_t epoch = 0;
    const auto our_rate = [&] {
      const double begin = bench::seconds_now();
      std::uint64_t images = 0;
      for (auto&& b : run.epoch(epoch++)) images += b.size();
      return static_cast<double>(images) / (bench::seconds_now() - begin);
    };
    (void)our_rate();
    for (int pair = 0; pair < (o.quick ? 1 : 5); ++pair) {
      // the best of three epochs, as the script has it
      const double our = std::max({our_rate(), our_rate(), our_rate()});
      const double their = rate_of_program(command, version);
      if (their == 0) break;
      ours.push_back(our);
      theirs.push_back(their);
      ratios.push_back(our / their);
    }
    if (ratios.empty()) {
      bench::print_skipped(p.row, "the script fails: " + command);
      continue;
    }
    char notes[96];
    std::snprintf(notes, sizeof notes, "%.0f images/s, the other %.0f (%s)", bench::quantile(ours, 0.5),
                  bench::quantile(theirs, 0.5), version.c_str());
    bench::print_row(p.row, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5), notes);
  }
}

void count_allocations(const bench::options& o, const std::vector<std::string>& names) {
  const bench::row row{"21k", "allocations per image, all threads, in the steady state", 0.001, true};
  if (!o.wants(row.id)) return;
  if (!allocations_are_counted) return bench::print_skipped(row, "needs glibc");
  auto run = plan_of(names, 2).open();
  std::uint64_t images = 0, epoch = 0, before = 0;
  constexpr std::uint64_t first = 20;  // until then crops that are larger than all before make scratches grow
  for (; epoch < first + 2; ++epoch) {
    if (epoch == first) {
      images = 0;
      before = allocations.load();
    }
    for (auto&& b : run.epoch(epoch)) images += b.size();
  }
  const auto made = static_cast<double>(allocations.load() - before);
  const double each = made / static_cast<double>(images);
  char notes[96];
  std::snprintf(notes, sizeof notes, "%.0f by malloc and its kin in two epochs of %.0f images", made,
                static_cast<double>(images) / 2);
  bench::print_row(row, each, each, notes);
}

void measure(const bench::options& o) {
  const std::array<bench::row, 4> rows{{
      {"21a", "random crops of photos, 1 worker / the same work by hand", 0.95},
      {"21b", "the same / the same crops decoded and nothing else", 0.85},
      {"21c", "the same / by hand, with images decoded whole", 1.3},
      {"21d", "2 workers / two bare threads of the same work", 0.9},
  }};
  const std::filesystem::path photos = photo_folder();
  if (!std::filesystem::is_directory(photos)) {
    for (const auto& row : rows) bench::print_skipped(row, "there is no folder " + photos.string());
    return;
  }
  const bench::folder folder(o, "images");
  std::vector<std::filesystem::path> paths(std::filesystem::directory_iterator(photos), {});
  std::sort(paths.begin(), paths.end());
  paths.resize(std::min(paths.size(), o.quick ? std::size_t{64} : paths.size()) / batch_size * batch_size);
  std::size_t full_chroma = 0;
  ps::shard_writer out(folder.file("photos-%04d.tar"), {.maxcount = 100});
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::ifstream in(paths[i], std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(in), {}};
    full_chroma += is_444(ps::bytes_of(file)) ? 1 : 0;
    char key[32];
    std::snprintf(key, sizeof key, "%06zu", i);
    out.write(key, {{"jpg", ps::bytes_of(file)}});
  }
  out.close();
  std::fprintf(stderr, "%zu photos, %.0f %% of them with full chroma (4:4:4)\n", paths.size(),
               100.0 * static_cast<double>(full_chroma) / static_cast<double>(paths.size()));
  std::vector<std::string> names;
  for (const auto& shard : out.shards()) names.push_back(shard.name);
  std::vector<bench::mapping> maps;
  std::vector<ps::bytes_view> files;
  for (const auto& name : names) {
    std::vector<bench::member_place> members;
    const bench::descriptor file(name);
    bench::find_members(file.get(), file.size(), ".jpg", members);
    maps.emplace_back(name);
    for (const auto& m : members) files.emplace_back(maps.back().data() + m.offset, m.size);
  }

  const auto look = [](const auto& b) {
    bench::escape(ps::get<"jpg">(b).data());
    return static_cast<std::uint64_t>(b.size());
  };
  std::array<hand, 2> hands;
  std::array<bench::buffers_in_turn, 2> batches{
      bench::buffers_in_turn(6, batch_size * image_values * sizeof(float)),
      bench::buffers_in_turn(6, batch_size * image_values * sizeof(float))};
  // Whole batches of one thread, or of one of two that take them in turn.
  const auto by_hand = [&](std::uint64_t epoch, std::size_t me, std::size_t threads, auto step) {
    std::uint64_t done = 0;
    for (std::size_t b = me; b < files.size() / batch_size; b += threads) {
      auto* const slots = reinterpret_cast<float*>(batches[me].next());
      for (std::size_t k = 0; k < batch_size; ++k, ++done)
        step(hands[me], files[b * batch_size + k], epoch, b * batch_size + k, slots + k * image_values);
      bench::escape(slots);
    }
    return done;
  };
  const auto full_work = [](hand& h, ps::bytes_view file, std::uint64_t epoch, std::uint64_t i, float* slot) {
    h.finish(h.decode_part(h.begin(file, epoch, i)), slot);
  };
  const auto crops_only = [](hand& h, ps::bytes_view file, std::uint64_t epoch, std::uint64_t i, float*) {
    bench::escape(h.decode_part(h.begin(file, epoch, i)).data());
  };
  const auto whole_images = [](hand& h, ps::bytes_view file, std::uint64_t epoch, std::uint64_t i,
                               float* slot) { h.finish(h.decode_whole(h.begin(file, epoch, i)), slot); };

  bench::options few = o;
  few.pairs = o.quick ? o.pairs : std::min(o.pairs, 11);
  const auto one_worker = [&](const bench::row& row, auto work) {
    if (!o.wants(row.id)) return;
    auto run = plan_of(names, 1).open();
    bench::compare(few, row, bench::epochs_of(run, look),
                   [&, epoch = std::uint64_t{0}]() mutable { return by_hand(epoch++, 0, 1, work); });
  };
  one_worker(rows[0], full_work);
  one_worker(rows[1], crops_only);
  one_worker(rows[2], whole_images);
  if (o.wants(rows[3].id)) {
    auto run = plan_of(names, 2).open();
    bench::compare(few, rows[3], bench::epochs_of(run, look), [&, epoch = std::uint64_t{0}]() mutable {
      const std::uint64_t e = epoch++;
      return bench::on_two_threads([&](std::size_t me) { return by_hand(e, me, 2, full_work); });
    });
  }
  compare_with_peers(o, names, folder.file(""));
  count_allocations(o, names);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
