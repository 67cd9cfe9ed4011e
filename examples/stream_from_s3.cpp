// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Trains the classifier of fashion_mnist.hpp from shards in an object store. With --put it uploads the shards
// that pack_webdataset wrote first. Where the store is and as whom it is asked stands in the environment, as
// for the tools of AWS: AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_ACCESS_KEY_ID, ... serve_s3.py starts a store of
// your own and sets them:
//
//     serve_s3.py --bucket data -- stream_from_s3 --store s3://data/fashion/ --put FOLDER

#include "arguments.hpp"
#include "fashion_mnist.hpp"

#include <penstock/observe/progress.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/s3.hpp>
#include <penstock/storage/s3_writer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

/// Uploads the shards of a folder, and the indexes beside them.
void put(const fs::path& folder, const std::string& store) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".tar") || name.ends_with(".tar.penstock-index")) files.push_back(entry.path());
  }
  if (files.empty())
    throw std::runtime_error("there are no shards in " + folder.string() +
                             "; make them with pack_webdataset");
  std::sort(files.begin(), files.end());

  const auto begin = clock::now();
  std::uint64_t bytes = 0;
  ps::s3_writer out;
  std::vector<char> part(std::size_t{1} << 20);
  for (const fs::path& one : files) {
    std::ifstream in(one, std::ios::binary);
    out.open(store + one.filename().string());
    while (in.read(part.data(), static_cast<std::streamsize>(part.size())) || in.gcount() != 0)
      out.write(std::as_bytes(std::span(part).first(static_cast<std::size_t>(in.gcount()))));
    if (in.bad()) throw std::runtime_error("cannot read " + one.string());
    bytes += out.finish().size;
  }
  std::printf("put %zu objects of %.1f MB in %.2f s\n", files.size(), static_cast<double>(bytes) * 1e-6,
              seconds_since(begin));
}

/// The shards of one split.
ps::s3 shards_of(const std::string& store, const std::string& split) {
  std::vector<std::string> names = ps::s3::list(store + split + "-");
  std::erase_if(names, [](const std::string& one) { return !one.ends_with(".tar"); });
  if (names.empty())
    throw std::runtime_error("there are no shards " + store + split + "-*.tar; --put FOLDER uploads some");
  return ps::s3(std::move(names));
}

double test_accuracy(const std::string& store, model& m, unsigned workers) {
  const auto loader = decoded(ps::webdataset(shards_of(store, "t10k"))) | ps::batch(256, ps::tail::keep) |
                      ps::workers(workers);
  std::uint64_t seen = 0, right = 0;
  for (auto&& batch : loader)
    for_each_sample(batch, [&](std::span<const std::uint8_t> image, std::size_t label) {
      ++seen;
      right += m.look(image) == label;
    });
  return static_cast<double>(right) / static_cast<double>(seen);
}

int train(arguments& given) {
  std::string store = given.text("store");
  const std::string folder = given.text("put", "");
  const std::uint64_t epochs = given.number("epochs", 1), batch_size = given.number("batch", 100);
  const auto workers = static_cast<unsigned>(given.number("workers", 2, max_workers));
  given.done();
  if (!store.ends_with('/')) store += '/';
  if (!folder.empty()) put(folder, store);

  const auto begin = clock::now();
  const auto loader = decoded(ps::webdataset(shards_of(store, "train"))) |
                      ps::shuffle(ps::seed(7), ps::window(8)) | ps::batch(batch_size, ps::tail::drop) |
                      ps::workers(workers);
  model m;
  auto run = loader.open();
  double first = 0;
  for (auto epoch : run.epochs(epochs)) {
    ps::progress bar("epoch " + std::to_string(epoch.number()), run.steps_per_epoch());
    const ps::run_counters before = run.counters();
    bar.begin(before);
    for (auto&& batch : epoch) {
      if (first == 0) first = seconds_since(begin);
      for_each_sample(batch,
                      [&](std::span<const std::uint8_t> image, std::size_t label) { m.look(image, label); });
      const float left = 1 - static_cast<float>(batch.step()) / static_cast<float>(run.steps_per_epoch());
      m.step(0.05f * left, batch.size());
      bar.tick([&] { return run.counters(); });
    }
    const ps::run_counters after = run.counters(), spent = ps::since(after, before);
    bar.finish(after);
    std::printf("epoch %llu: stall %.2f %%, %.0f samples/s, test accuracy %.4f\n",
                static_cast<unsigned long long>(epoch.number()), 100 * spent.stall(),
                spent.samples_per_second(), test_accuracy(store, m, workers));
  }
  const ps::storage_counters asked = run.counters().storage;
  std::printf("first batch after %.3f s; %llu requests, %.1f MB, %llu retries, %llu hedges\n", first,
              static_cast<unsigned long long>(asked.requests), static_cast<double>(asked.bytes) * 1e-6,
              static_cast<unsigned long long>(asked.retries), static_cast<unsigned long long>(asked.hedges));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    constexpr const char* usage =
        "stream_from_s3 --store s3://BUCKET/PREFIX [--put FOLDER] [--epochs N] [--workers N] [--batch B]";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    return train(given);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "stream_from_s3: %s\n", e.what());
    return 1;
  }
}
