// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 24: objects read whole from one server on loopback, by `s3` and by clients that Python programs use.
// nginx serves the files and looks at no signature, so that the clients are what is measured.
#include "support/folder.hpp"
#include "support/harness.hpp"
#include "support/web_store.hpp"

#include <penstock/storage/s3.hpp>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace ps = penstock;

constexpr std::size_t part_size = std::size_t{8} << 20, max_in_flight = 4;
constexpr const char* bucket = "bench";

struct objects {
  std::uint64_t number, size;
};

std::string name_of(std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "shard-%04d.tar", static_cast<int>(number));
  return text;
}

/// Makes the objects, as files in a folder of the bucket's name.
void make(const bench::folder& folder, objects what) {
  std::filesystem::create_directories(folder.path() / bucket);
  std::vector<char> bytes(what.size);
  std::uint32_t draw = 1;
  for (std::uint64_t i = 0; i < what.number; ++i) {
    for (char& c : bytes) c = static_cast<char>((draw = draw * 1664525 + 1013904223) >> 24);
    std::ofstream(folder.path() / bucket / name_of(i), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
}

/// Processor seconds per GB of 10^9 bytes, and GB per second.
struct figures {
  double cost = 0, rate = 0;
};

/// Reads all objects whole, in parts, into four blocks of memory that take turns.
class reader {
 public:
  reader(const std::string& endpoint, objects what) : what_(what), session_(opened(endpoint, what)) {
    for (std::vector<std::byte>& one : blocks_) one.resize(what.size);
  }

  figures read_all() {
    const double used = bench::processor_seconds(), begin = bench::seconds_now();
    next_ = 0, failed_ = nullptr, open_ = 0;
    for (std::size_t i = 0; i < blocks_.size(); ++i) begin_object(i);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_ == 0; });
    if (failed_) std::rethrow_exception(failed_);
    const double bytes = static_cast<double>(what_.number * what_.size);
    return {(bench::processor_seconds() - used) / bytes * 1e9, bytes / (bench::seconds_now() - begin) / 1e9};
  }

 private:
  static ps::s3::session opened(const std::string& endpoint, objects what) {
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i < what.number; ++i) names.push_back(std::string(bucket) + "/" + name_of(i));
    return ps::s3(names, {.place = {.region = "us-east-1", .endpoint = endpoint},
                          .identity = {.credentials = ps::s3_credentials("key", "secret")},
                          .connection = {.connections = max_in_flight}})
        .connect();
  }

  /// The next object into block `i`; a block's tag is its number.
  void begin_object(std::size_t i) {
    std::vector<ps::read_request> parts;
    {
      const std::scoped_lock lock(mutex_);
      if (failed_ || next_ == what_.number) return;
      for (std::uint64_t at = 0; at < what_.size; at += part_size)
        parts.push_back({static_cast<ps::object_id>(next_), at,
                         ps::mutable_bytes(blocks_[i]).subspan(at, std::min(part_size, what_.size - at)), i});
      ++next_;
      left_[i] = parts.size();
      open_ += parts.size();
    }
    session_.read_many(parts, {this, [](void* self, std::uint64_t tag, std::exception_ptr error) noexcept {
                                 static_cast<reader*>(self)->ended(tag, std::move(error));
                               }});
  }
  void ended(std::uint64_t tag, std::exception_ptr error) noexcept {
    bool whole = false;
    {
      const std::scoped_lock lock(mutex_);
      if (error && !failed_) failed_ = std::move(error);
      whole = --left_[tag] == 0;
    }
    if (whole) begin_object(tag);
    const std::scoped_lock lock(mutex_);
    if (--open_ == 0) changed_.notify_one();
  }

  objects what_;
  std::array<std::vector<std::byte>, max_in_flight> blocks_;
  std::array<std::size_t, max_in_flight> left_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ = 0;
  std::size_t open_ = 0;
  std::exception_ptr failed_;
  ps::s3::session session_;
};

/// What peer_s3.py says of a peer; a cost of 0 if it fails.
figures figures_of(const std::string& command, std::string& version) {
  figures found;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  char text[128] = "";
  if (std::fscanf(pipe, "%lf %lf %127[^\n]", &found.cost, &found.rate, text) != 3) found = {};
  version = text;
  ::pclose(pipe);
  return found;
}

void measure(const bench::options& o) {
  const bench::row cost{"24a", "s3: processor seconds per GB, the best peer's / ours", 2.0};
  const bench::row rate{"24b", "s3: bytes per second / the best peer's", 0.95};
  if (!o.wants(cost.id) && !o.wants(rate.id)) return;
  const auto skip = [&](const std::string& why) {
    for (const bench::row* one : {&cost, &rate})
      if (o.wants(one->id)) bench::print_skipped(*one, why);
  };
  const char* const python = std::getenv("BENCH_S3_PYTHON");
  const char* const script = std::getenv("BENCH_S3_SCRIPT");
  if (python == nullptr || script == nullptr)
    return skip("bench/run.sh installs the peers and says where they are");
  if (bench::nginx_program().empty()) return skip("nginx is not here");

  const objects what{o.quick ? 4u : 16u, (o.quick ? std::uint64_t{16} : std::uint64_t{64}) << 20};
  const bench::folder folder(o, "s3");
  make(folder, what);
  const bench::web_store store(folder);
  const std::string endpoint = "http://127.0.0.1:" + std::to_string(store.port());
  reader ours(endpoint, what);
  (void)ours.read_all();
  std::vector<double> costs, rates, our_costs, our_rates;
  std::string notes;
  const std::array<const char*, 3> peers{"boto3", "obstore", "s3torchconnector"};
  for (int pair = 0; pair < (o.quick ? 1 : 5); ++pair) {
    figures best_of_ours{1e9, 0}, best{1e9, 0};
    for (int i = 0; i < 3; ++i) {
      const figures one = ours.read_all();
      best_of_ours = {std::min(best_of_ours.cost, one.cost), std::max(best_of_ours.rate, one.rate)};
    }
    for (const char* const peer : peers) {
      std::string command =
          "AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret '" + std::string(python) + "'";
      for (const std::string& word : {std::string(script), std::string(peer), endpoint, std::string(bucket),
                                      std::to_string(what.number), std::to_string(what.size)})
        command += " '" + word + "'";
      std::string version;
      const figures one = figures_of(command, version);
      if (one.cost == 0) continue;
      best = {std::min(best.cost, one.cost), std::max(best.rate, one.rate)};
      if (pair == 0) {
        char text[96];
        std::snprintf(text, sizeof text, "; %s %.2f s/GB %.2f GB/s", version.c_str(), one.cost, one.rate);
        notes += text;
      }
    }
    if (best.rate == 0) return skip("bench/s3/peer_s3.py fails");
    costs.push_back(best.cost / best_of_ours.cost);
    rates.push_back(best_of_ours.rate / best.rate);
    our_costs.push_back(best_of_ours.cost);
    our_rates.push_back(best_of_ours.rate);
  }
  char text[64];
  std::snprintf(text, sizeof text, "ours %.2f s/GB %.2f GB/s", bench::quantile(our_costs, 0.5),
                bench::quantile(our_rates, 0.5));
  if (o.wants(cost.id))
    bench::print_row(cost, bench::quantile(costs, 0.25), bench::quantile(costs, 0.5), text + notes);
  if (o.wants(rate.id))
    bench::print_row(rate, bench::quantile(rates, 0.25), bench::quantile(rates, 0.5), text + notes);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
