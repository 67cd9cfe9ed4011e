// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 23: shards on a web server. Throughput and processor time against loops that throw the bytes away, and
// what becomes of latency: of each request, and of one in a hundred.

#include "support/folder.hpp"
#include "support/harness.hpp"
#include "support/web_store.hpp"

#include <penstock/device/simulated.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/hedged.hpp>
#include <penstock/storage/http.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace {

using namespace std::chrono_literals;
using namespace penstock::literals;

constexpr std::size_t sample_bytes = 110'000;

/// The URLs of files of the store, at a server's port.
std::vector<std::string> urls(const std::vector<std::string>& files, std::uint16_t port) {
  std::vector<std::string> all;
  for (const std::string& one : files)
    all.push_back("http://127.0.0.1:" + std::to_string(port) + one.substr(one.rfind('/')));
  return all;
}

/// The payloads of all samples.
std::vector<bench::web_range> payloads(const std::vector<std::string>& files) {
  std::vector<bench::web_range> all;
  for (const std::string& one : files) {
    const bench::descriptor file(one);
    std::vector<bench::member_place> found;
    bench::find_members(file.get(), file.size(), ".bin", found);
    for (const auto& each : found) all.push_back({one.substr(one.rfind('/')), each.offset, each.size});
  }
  return all;
}

/// Ranges of 4 MB to batch slots against four sockets whose bytes are thrown away.
void large(const bench::options& o) {
  const bench::row fast{"23a", "4 MB ranges from nginx, 4 connections, to batches: throughput / socket loop",
                        0.8};
  const bench::row cheap{"23b", "the same: processor time of the socket loop / ours", 0.7};
  const bench::row ahead{"23h", "as 23a, read ahead by prefetch(16)"};
  const bench::row ahead_cheap{"23i", "as 23b, read ahead by prefetch(16)"};
  if (!o.wants("23a") && !o.wants("23b") && !o.wants("23h") && !o.wants("23i")) return;
  const bench::folder folder(o, "storage_large");
  const std::size_t bytes = 4'000'000, samples = o.quick ? 32 : 256;
  const auto files = bench::write_shards(folder, 4, samples / 4, bytes, false);
  const bench::web_store store(folder);
  const auto ranges = payloads(files);
  const ps::http where(urls(files, store.port()), {.connections = 4});
  const auto loader = [&](std::uint64_t samples_ahead, unsigned threads) {
    return ps::webdataset(where) | ps::prefetch(samples_ahead) | ps::fields<"bin"> | ps::batch(4) |
           ps::workers(threads);
  };
  // The loop's bytes go to buffers that fit a cache, or, for comparison, to as many as the batches have.
  std::vector<std::vector<char>> small_buffers(4), large_buffers(4);
  for (auto& one : large_buffers) one.resize(std::size_t{24'000'000});
  const auto loop = [&](std::vector<std::vector<char>>& buffers) {
    std::vector<std::thread> threads;
    std::vector<std::uint64_t> sums(4);
    for (std::size_t i = 0; i < 4; ++i)
      threads.emplace_back([&, i] { sums[i] = bench::discard(store.port(), ranges, i, 4, buffers[i]); });
    for (std::thread& one : threads) one.join();
    return sums[0] + sums[1] + sums[2] + sums[3];
  };
  struct cost {
    double seconds = 1e9, processor = 1e9;
  };
  // Of several takes the best counts, as in other rows.
  const auto take = [&](cost& best, const auto& side) {
    const double cpu = bench::processor_seconds(), begin = bench::seconds_now();
    const std::uint64_t sum = side();
    best.seconds = std::min(best.seconds, bench::seconds_now() - begin);
    best.processor = std::min(best.processor, bench::processor_seconds() - cpu);
    if (sum != samples * bytes) throw std::runtime_error("row 23a: a side read another amount");
  };
  const auto compare = [&](auto run, const bench::row& speed, const bench::row& processor) {
    std::vector<double> speeds, costs, to_large, our_costs;
    std::uint64_t epoch = 0;
    for (int pair = -1; pair < std::min(o.pairs, 9); ++pair) {
      cost ours, theirs, large_ones;
      for (int i = 0; i < (pair < 0 ? 1 : o.takes); ++i) {
        take(ours, [&] {
          std::uint64_t sum = 0;
          for (auto&& b : run.epoch(epoch++)) sum += b.size() * bytes;
          return sum;
        });
        take(theirs, [&] { return loop(small_buffers); });
        take(large_ones, [&] { return loop(large_buffers); });
      }
      if (pair < 0) continue;
      speeds.push_back(theirs.seconds / ours.seconds);
      costs.push_back(theirs.processor / ours.processor);
      to_large.push_back(theirs.processor / large_ones.processor);
      our_costs.push_back(ours.processor * 4e9 / static_cast<double>(samples * bytes));
    }
    const std::string notes =
        "ours " + std::to_string(bench::quantile(our_costs, 0.5)) +
        " s of processor per 4 GB; the loop into as many bytes as the batches have: processor time of the "
        "loop / that " +
        std::to_string(bench::quantile(to_large, 0.5));
    bench::print_row(speed, bench::quantile(speeds, 0.25), bench::quantile(speeds, 0.5), notes);
    bench::print_row(processor, bench::quantile(costs, 0.25), bench::quantile(costs, 0.5), notes);
  };
  // Loopback has no latency to hide: workers that read straight into their slots save the copy.
  compare(loader(0, 6).open(), fast, cheap);
  compare(loader(16, 1).open(), ahead, ahead_cheap);
}

/// Requests per second of wrk, which sends the same ranges.
double wrk_rate(const bench::folder& folder, std::uint16_t port, const std::vector<bench::web_range>& ranges,
                bool quick) {
  const std::string script = folder.file("ranges.lua");
  {
    std::ofstream out(script);
    out << "local r = {\n";
    for (const auto& one : ranges)
      out << "{\"" << one.path << "\",\"bytes=" << one.offset << "-" << one.offset + one.size - 1 << "\"},\n";
    out << "}\nlocal all = {}\nlocal i = 0\n"
           "init = function(args) for k, v in ipairs(r) do\n"
           "all[k] = wrk.format(\"GET\", v[1], {[\"Range\"] = v[2]}) end end\n"
           "request = function() i = i % #all + 1; return all[i] end\n";
  }
  const std::string command = "wrk -t1 -c4 -d" + std::string(quick ? "1" : "3") + "s -s " + script +
                              " http://127.0.0.1:" + std::to_string(port) + "/ 2>&1";
  std::FILE* const out = ::popen(command.c_str(), "r");
  if (out == nullptr) throw std::runtime_error("cannot run wrk");
  double rate = 0;
  char line[512];
  while (std::fgets(line, sizeof line, out) != nullptr) {
    (void)std::sscanf(line, "Requests/sec: %lf", &rate);
    if (std::string_view(line).find("Non-2xx") != std::string_view::npos) rate = -1;
  }
  if (::pclose(out) != 0 || rate <= 0) throw std::runtime_error("wrk failed");
  return rate;
}

/// Samples of 110 KB, each its own request.
void small(const bench::options& o) {
  const bench::row rate{"23c", "110 KB samples as single ranges, 4 connections: requests/s / those of wrk",
                        0.7};
  if (!o.wants("23c")) return;
  if (bench::program_of({"wrk"}).empty()) return bench::print_skipped(rate, "there is no wrk");
  const bench::folder folder(o, "storage_small");
  const auto files = bench::write_shards(folder, 4, o.quick ? 256 : 2048, sample_bytes, false);
  const bench::web_store store(folder);
  auto ranges = payloads(files);
  std::shuffle(ranges.begin(), ranges.end(), ps::rng(1, 2, 3));
  const ps::http where(urls(files, store.port()), {.connections = 4});
  auto run = (ps::webdataset(where) | ps::shuffle(ps::seed(7)) |
              ps::prefetch(256, {.coalesce_gap = 0, .max_coalesced = 1}) | ps::fields<"bin"> | ps::batch(64) |
              ps::workers(1))
                 .open();
  std::vector<double> ratios, rates;
  for (int pair = -1; pair < std::min(o.pairs, 9); ++pair) {
    const std::uint64_t before = run.counters().storage.requests;
    const double begin = bench::seconds_now();
    for (auto&& b : run.epoch(static_cast<std::uint64_t>(pair + 1))) bench::escape(ps::get<"bin">(b).data());
    const double ours =
        static_cast<double>(run.counters().storage.requests - before) / (bench::seconds_now() - begin);
    const double theirs = wrk_rate(folder, store.port(), ranges, o.quick);
    if (pair < 0) continue;
    ratios.push_back(ours / theirs);
    rates.push_back(ours);
  }
  bench::print_row(rate, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5),
                   "ours " + std::to_string(static_cast<int>(bench::quantile(rates, 0.5))) + " requests/s");
}

/// A file of rows of the size of a sample.
std::string rows(const bench::folder& folder, const std::string& name, std::size_t count) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(count) + ", " +
                       std::to_string(sample_bytes) + "), }";
  header.resize(117, ' ');
  header += '\n';
  std::ofstream out(folder.file(name), std::ios::binary);
  out << "\x93NUMPY\x01" << '\0' << static_cast<char>(header.size()) << '\0' << header;
  std::string row(sample_bytes, ' ');
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < row.size(); j += 8) row[j] = static_cast<char>(i + j);
    out << row;
  }
  return folder.file(name);
}

/// 50 ms for each request, and an accelerator that takes 100 ms for a batch of 64.
void far(const bench::options& o) {
  const bench::row idle{
      "23d", "50 ms a request, 110 KB, 100 ms per batch of 64: idle after the first batch, %", 2, true};
  if (!o.wants("23d")) return;
  const bench::folder folder(o, "storage_far");
  const std::vector<std::string> files{rows(folder, "a.npy", o.quick ? 1024 : 2048),
                                       rows(folder, "b.npy", o.quick ? 1024 : 2048)};
  const bench::web_store store(folder);
  const bench::delaying_proxy proxy(store.port(), 50ms);
  std::vector<double> stalls;
  std::uint64_t requests = 0;
  for (int i = 0; i < (o.quick ? 1 : 3); ++i) {
    const ps::simulated accelerator({.step = 100ms});
    const ps::http where(urls(files, proxy.port()), {.connections = 64});
    auto run = (ps::npy_rows<std::uint8_t, sample_bytes>(where) | ps::shuffle(ps::seed(7)) |
                ps::prefetch(256, {.coalesce_gap = 0, .max_coalesced = 1}) | ps::batch(64) |
                ps::pin_and_copy(accelerator) | ps::workers(1))
                   .open();
    double began = 0, waited = 0;
    int n = 0;
    for (auto&& b : run.epoch(0)) {
      if (n++ == 0) began = bench::seconds_now(), waited = run.counters().stall_seconds;
      bench::escape(b.device_data());
      accelerator.step();
    }
    stalls.push_back(100 * (run.counters().stall_seconds - waited) / (bench::seconds_now() - began));
    requests = run.counters().storage.requests;
  }
  bench::print_row(idle, bench::quantile(stalls, 0.75), bench::quantile(stalls, 0.5),
                   "at most 64 connections, " + std::to_string(requests) + " requests, " +
                       std::to_string(stalls.size()) + " runs");
}

/// One read in a hundred stalls for 2 s.
void late(const bench::options& o) {
  const bench::row tail{"23e", "1 request in 100 stalls for 2 s: p99 of batch time / with hedged", 5};
  const bench::row more{"23f", "the same: further requests of hedged, %", 5, true};
  if (!o.wants("23e") && !o.wants("23f")) return;
  const bench::folder folder(o, "storage_late");
  const auto files = bench::write_shards(folder, 2, o.quick ? 512 : 1664, sample_bytes, false);
  const ps::simulated_storage far(ps::file(files),
                                  {.latency = 20ms, .jitter = 10ms, .stall_one_in = 100, .stall = 2s});
  std::uint64_t requests = 0, hedges = 0;
  const auto p99 = [&](const auto& where) {
    auto run = (ps::webdataset(where) | ps::shuffle(ps::seed(7)) |
                ps::prefetch(256, {.coalesce_gap = 0, .max_coalesced = 1}) | ps::fields<"bin"> |
                ps::batch(8) | ps::workers(1))
                   .open();
    std::vector<double> times;
    double last = bench::seconds_now();
    for (auto&& b : run.epoch(0)) {
      bench::escape(ps::get<"bin">(b).data());
      const double now = bench::seconds_now();
      times.push_back(now - last);
      last = now;
    }
    requests = run.counters().storage.requests;
    hedges = run.counters().storage.hedges;
    times.erase(times.begin(), times.begin() + 4);  // the start
    return bench::quantile(times, 0.99);
  };
  const double plain = p99(far);
  const double helped = p99(ps::hedged(far));
  const std::string notes = "p99 " + bench::milliseconds(plain) + " and " + bench::milliseconds(helped);
  bench::print_row(tail, plain / helped, plain / helped, notes);
  const double share = 100 * static_cast<double>(hedges) / static_cast<double>(requests - hedges);
  bench::print_row(more, share, share, std::to_string(hedges) + " of " + std::to_string(requests));
}

/// The memory that a run holds over storages of several latencies.
void held(const bench::options& o) {
  const bench::row maximum{"23g", "memory(64 MiB), latency 1 to 200 ms: most bytes held / limit", 1, true};
  if (!o.wants("23g")) return;
  const bench::folder folder(o, "storage_held");
  const auto files = bench::write_shards(folder, 2, 512, sample_bytes, false);
  double worst = 0, times = 0;
  for (const auto latency : {1ms, 20ms, 200ms}) {
    const ps::simulated_storage where(ps::file(files), {.latency = latency, .jitter = latency});
    auto run = (ps::webdataset(where) | ps::shuffle(ps::seed(7)) | ps::fields<"bin"> | ps::batch(32) |
                ps::memory(64_MiB) | ps::workers(2))
                   .open();
    for (auto&& b : run.epoch(0)) {
      bench::escape(ps::get<"bin">(b).data());
      worst = std::max(worst, static_cast<double>(run.counters().bytes_held) / static_cast<double>(64_MiB));
      ++times;
    }
  }
  bench::print_row(maximum, worst, worst, std::to_string(static_cast<int>(times)) + " batches");
}

void measure(const bench::options& o) {
  if (bench::nginx_program().empty()) {
    for (const char* const id : {"23a", "23b", "23c", "23d"})
      if (o.wants(id)) bench::print_skipped({id, "shards on a web server"}, "there is no nginx");
  } else {
    far(o);  // first: the proxy is forked from a process without threads
    large(o);
    small(o);
  }
  late(o);
  held(o);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
