// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows 40 and 41: samples packed into rows by their lengths, beside seqpacker and TRL on the same lengths,
// and the rows of steps dealt to ranks with equal work, beside Megatron's scheduler on the same documents.
//
// Peers are other programs: $BENCH_SEQPACKER, made by build_seqpacker.sh, and peer_packing.py in
// $BENCH_SEQUENCES_SCRIPTS with $BENCH_SEQUENCES_PYTHON. $BENCH_SEQUENCES_LENGTHS names a file of real
// lengths, made by lengths.py.

#include "sequences/peers.hpp"
#include "support/harness.hpp"

#include <penstock/order/equal_work.hpp>
#include <penstock/order/permutation.hpp>
#include <penstock/order/row_packer.hpp>

#include <fstream>
#include <sstream>

namespace ps = penstock;

namespace {

using bench::lengths, bench::lines, bench::lines_of, bench::number, bench::quoted, bench::setting,
    bench::written;

constexpr std::size_t seeds = 20, window = 10'000;
constexpr std::uint32_t uniform_capacity = 512, real_capacity = 2048;

/// 20 seeds of 10,000 lengths uniform in 1..512, one after another.
lengths uniform_lengths() {
  lengths made;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    for (std::uint64_t i = 0; i < window; ++i) {
      made.push_back(static_cast<std::uint32_t>(1 + ps::mix64(ps::mix64(seed) + i) % uniform_capacity));
    }
  }
  return made;
}

lengths read_lengths(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  const std::string bytes = all.str();
  lengths made(bytes.size() / sizeof(std::uint32_t));
  std::copy_n(bytes.data(), made.size() * sizeof(std::uint32_t), reinterpret_cast<char*>(made.data()));
  if (made.empty()) throw std::runtime_error("there are no lengths in " + path);
  return made;
}

lines seqpacker(const std::filesystem::path& file, std::uint32_t capacity, std::size_t each, int takes) {
  const std::string program = setting("BENCH_SEQPACKER");
  if (program.empty()) return {};
  return lines_of(quoted(program) + " " + quoted(file.string()) + " " + std::to_string(capacity) + " " +
                  std::to_string(each) + " " + std::to_string(takes));
}
lines python_peer(const std::string& which, const std::filesystem::path& file, const std::string& numbers) {
  const std::string python = setting("BENCH_SEQUENCES_PYTHON"), folder = setting("BENCH_SEQUENCES_SCRIPTS");
  if (python.empty() || folder.empty()) return {};
  return lines_of(quoted(python) + " " + quoted(folder + "/peer_packing.py") + " " + which + " " +
                  quoted(file.string()) + " " + numbers);
}
lines trl(const std::filesystem::path& file, std::uint32_t capacity, std::size_t each) {
  return python_peer("trl", file, std::to_string(capacity) + " " + std::to_string(each) + " 1");
}

/// Each window of the lengths, and what is to be done with it.
void in_windows(const lengths& of, std::size_t each, const auto& body) {
  for (std::size_t begin = 0; begin < of.size(); begin += each)
    body(std::span(of.data() + begin, std::min(each, of.size() - begin)));
}

struct packed {
  std::vector<double> rows, padding;  // of each window; padding in percent
  double padding_of_all = 0;
};

double percent_padded(double tokens, double rows, std::uint32_t capacity) {
  return 100 * (1 - tokens / (rows * capacity));
}

packed pack(const lengths& of, std::uint32_t capacity, std::size_t each) {
  ps::row_packer packer(ps::row_limits{capacity, 0, ps::packing::best_fit});
  packed made;
  double tokens = 0, rows = 0;
  in_windows(of, each, [&](std::span<const std::uint32_t> part) {
    packer.pack(part);
    double sum = 0;
    for (const std::uint32_t n : part) sum += n;
    made.rows.push_back(static_cast<double>(packer.rows()));
    made.padding.push_back(percent_padded(sum, made.rows.back(), capacity));
    tokens += sum;
    rows += made.rows.back();
  });
  made.padding_of_all = percent_padded(tokens, rows, capacity);
  return made;
}

std::string range(const std::vector<double>& values) {
  return number(bench::quantile(values, 0.5)) + " % (" + number(bench::quantile(values, 0)) + " to " +
         number(bench::quantile(values, 1)) + ")";
}

void padding_rows(const bench::options& o, const lengths& uniform, const std::filesystem::path& file) {
  const bench::row beside{"40a", "rows made of 10,000 lengths, most / fewest of seqpacker and TRL", 1.0,
                          true};
  if (o.wants(beside.id)) {
    const packed ours = pack(uniform, uniform_capacity, window);
    std::string notes = "padding " + range(ours.padding);
    std::vector<double> ratios;
    std::vector<double> fewest(seeds, 1e300);
    for (const auto& [name, theirs] : {std::pair{"seqpacker", seqpacker(file, uniform_capacity, window, 1)},
                                       std::pair{"TRL", trl(file, uniform_capacity, window)}}) {
      if (theirs.size() != seeds) {
        notes += std::string(", no ") + name;
        continue;
      }
      std::vector<double> padding;
      for (std::size_t i = 0; i < seeds; ++i) {
        fewest[i] = std::min(fewest[i], theirs[i].first);
        const double tokens = (1 - ours.padding[i] / 100) * ours.rows[i] * uniform_capacity;
        padding.push_back(percent_padded(tokens, theirs[i].first, uniform_capacity));
      }
      notes += std::string(", ") + name + " " + range(padding);
    }
    for (std::size_t i = 0; i < seeds; ++i) ratios.push_back(ours.rows[i] / fewest[i]);
    if (fewest[0] < 1e300)
      bench::print_row(beside, bench::quantile(ratios, 1), bench::quantile(ratios, 0.5),
                       notes + ", " + std::to_string(seeds) + " seeds");
    else
      bench::print_skipped(beside, "there is neither seqpacker nor TRL");
  }
  const bench::row small{"40b", "padding in windows of 1,000 of the same, percent", 0, true};
  if (o.wants(small.id)) {
    const packed ours = pack(uniform, uniform_capacity, 1000);
    bench::print_row(small, ours.padding_of_all, bench::quantile(ours.padding, 0.5), range(ours.padding));
  }
}

/// Pieces of at most `capacity`, of which the last one of a sample is the remainder, in a shuffled order.
lengths pieces(const lengths& of, std::uint32_t capacity) {
  lengths cut, mixed;
  for (std::uint32_t n : of) {
    for (; n > capacity; n -= capacity) cut.push_back(capacity);
    if (n != 0) cut.push_back(n);
  }
  const ps::permutation order(cut.size(), ps::mix64(7));
  for (std::uint64_t i = 0; i < cut.size(); ++i) mixed.push_back(cut[order(i)]);
  return mixed;
}

void real_rows(const bench::options& o, const lengths& mixed) {
  const auto fill = [&](const bench::row& r, std::size_t each) {
    if (!o.wants(r.id)) return;
    const packed ours = pack(mixed, real_capacity, each);
    const auto whole = std::count(mixed.begin(), mixed.end(), real_capacity);
    bench::print_row(r, ours.padding_of_all, bench::quantile(ours.padding, 0.5),
                     std::to_string(mixed.size()) + " samples, " + std::to_string(whole) + " of them of " +
                         std::to_string(real_capacity) + " tokens; by window " + range(ours.padding));
  };
  fill({"40c", "padding of real lengths in windows of 10,000, capacity 2,048, percent", 0.2, true}, window);
  fill({"40f", "the same in windows of 1,000, percent", 0.5, true}, 1000);
}

void speed_rows(const bench::options& o, const lengths& uniform, const std::filesystem::path& file) {
  const bench::row alone{"40d", "packing 10,000 lengths, seqpacker / ours", 1.0, false};
  if (o.wants(alone.id)) {
    ps::row_packer packer(ps::row_limits{uniform_capacity, 0, ps::packing::best_fit});
    std::vector<double> ratios, our_times, their_times;
    for (int pair = -1; pair < o.pairs; ++pair) {
      double ours = 0, theirs = 0;
      in_windows(uniform, window, [&](std::span<const std::uint32_t> part) {
        double best = 1e300;
        for (int take = 0; take < o.takes; ++take) {
          const double begin = bench::seconds_now();
          packer.pack(part);
          bench::escape(packer.items(0).data());
          best = std::min(best, bench::seconds_now() - begin);
        }
        ours += best;
      });
      for (const auto& [rows, seconds] : seqpacker(file, uniform_capacity, window, o.takes))
        theirs += seconds;
      if (theirs == 0 && pair < 0) break;
      if (pair < 0) continue;
      ratios.push_back(theirs / ours);
      our_times.push_back(ours);
      their_times.push_back(theirs);
    }
    const auto rate = [](const std::vector<double>& times) {
      return number(static_cast<double>(seeds * window) / bench::quantile(times, 0.5) * 1e-6) +
             " million samples/s";
    };
    if (ratios.empty())
      bench::print_skipped(alone, "there is no seqpacker");
    else
      bench::print_row(alone, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5),
                       "ours " + rate(our_times) + ", seqpacker " + rate(their_times) + ", " +
                           std::to_string(o.pairs) + " pairs of " + std::to_string(o.takes) + " takes");
  }
  const bench::row pass{"40g", "order, lengths and packing of an epoch, million samples/s", 5.0, false};
  if (o.wants(pass.id)) {
    const std::uint64_t samples = o.quick ? 100'000 : 1'000'000;
    lengths stored;
    for (std::uint64_t i = 0; i < samples; ++i)
      stored.push_back(static_cast<std::uint32_t>(1 + ps::mix64(i) % 4096));
    ps::row_packer packer(ps::row_limits{4096, 0, ps::packing::best_fit});
    std::vector<double> rates;
    lengths part(window);
    for (int round = 0; round < o.pairs; ++round) {
      const double begin = bench::seconds_now();
      const ps::permutation order(samples, static_cast<std::uint64_t>(round));
      std::size_t rows = 0;
      for (std::uint64_t at = 0; at < samples; at += window) {
        for (std::uint64_t i = 0; i < window; ++i) part[i] = stored[order(at + i)];
        packer.pack(part);
        rows += packer.rows();
      }
      bench::escape(&rows);
      rates.push_back(static_cast<double>(samples) / (bench::seconds_now() - begin) * 1e-6);
    }
    bench::print_row(pass, bench::quantile(rates, 0.25), bench::quantile(rates, 0.5),
                     std::to_string(samples) + " samples of 1..4,096 tokens, capacity 4,096");
  }
}

/// Rows of a step: the lengths of their documents.
using step_rows = std::vector<std::vector<std::uint32_t>>;

constexpr std::size_t ranks = 8;

/// The rows of the epoch in a shuffled order, cut into steps; the last one, if it is not whole, is left out.
std::vector<step_rows> steps_of(const lengths& mixed, std::size_t rows_of_rank) {
  ps::row_packer packer(ps::row_limits{real_capacity, 0, ps::packing::best_fit});
  step_rows all;
  in_windows(mixed, window, [&](std::span<const std::uint32_t> part) {
    packer.pack(part);
    const ps::permutation order(packer.rows(), ps::mix64(all.size()));
    for (std::uint64_t r = 0; r < packer.rows(); ++r) {
      all.emplace_back();
      for (const std::uint32_t i : packer.items(order(r))) all.back().push_back(part[i]);
    }
  });
  std::vector<step_rows> steps;
  const std::size_t each = ranks * rows_of_rank;
  for (std::size_t at = 0; at + each <= all.size(); at += each)
    steps.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                       all.begin() + static_cast<std::ptrdiff_t>(at + each));
  return steps;
}

/// The largest work of a rank over the mean, of every step, dealt and in order; and how long a deal takes.
struct balance {
  std::vector<double> dealt, in_order;
  double seconds = 0;
};

balance balance_of(const std::vector<step_rows>& steps, ps::work_weights weights) {
  balance found;
  ps::equal_work work;
  std::vector<std::uint64_t> costs;
  for (const step_rows& step : steps) {
    costs.clear();
    for (const auto& row : step) {
      std::uint64_t cost = 0;
      for (const std::uint32_t n : row) cost = ps::work_weights::plus(cost, weights.of(n));
      costs.push_back(cost);
    }
    const double begin = bench::seconds_now();
    work.deal(costs, ranks);
    found.seconds += bench::seconds_now() - begin;
    const std::size_t each = step.size() / ranks;
    double total = 0, most = 0, most_in_order = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      double sum = 0, in_order = 0;
      for (const std::uint32_t row : work.rows(rank)) sum += static_cast<double>(costs[row]);
      for (std::size_t i = 0; i < each; ++i) in_order += static_cast<double>(costs[rank * each + i]);
      total += sum;
      most = std::max(most, sum);
      most_in_order = std::max(most_in_order, in_order);
    }
    found.dealt.push_back(most / (total / ranks));
    found.in_order.push_back(most_in_order / (total / ranks));
  }
  found.seconds /= static_cast<double>(steps.size());
  return found;
}

std::string median_of(const std::vector<double>& ratios) {
  return number(bench::quantile(ratios, 0.5), "%.4f") +
         " (95 %: " + number(bench::quantile(ratios, 0.95), "%.4f") + ")";
}

std::string beside_megatron(const bench::options& o, const std::vector<step_rows>& steps) {
  lengths documents;
  for (const step_rows& step : steps) {
    std::uint32_t count = 0;
    for (const auto& row : step) count += static_cast<std::uint32_t>(row.size());
    documents.push_back(count);
    for (const auto& row : step) documents.insert(documents.end(), row.begin(), row.end());
  }
  const std::filesystem::path file = written(o, "steps.u32", documents);
  std::vector<double> ratios;
  for (const auto& [ratio, groups] :
       python_peer("megatron", file, std::to_string(ranks) + " " + std::to_string(real_capacity)))
    ratios.push_back(ratio);
  if (!o.keep) std::filesystem::remove(file);
  return ratios.empty() ? ", no Megatron" : ", Megatron with single documents " + median_of(ratios);
}

void work_rows(const bench::options& o, const lengths& mixed) {
  const auto measure = [&](const bench::row& r, ps::work_weights weights, bool megatron) {
    if (!o.wants(r.id)) return;
    const std::vector<step_rows> steps = steps_of(mixed, 8);
    const balance found = balance_of(steps, weights);
    std::string notes = "in order ";
    notes += median_of(found.in_order);
    if (megatron) notes += beside_megatron(o, steps);
    for (const std::size_t each : {4u, 2u, 1u}) {
      const balance fewer = balance_of(steps_of(mixed, each), weights);
      notes += "; " + std::to_string(each) + (each == 1 ? " row" : " rows") + " a rank ";
      notes += number(bench::quantile(fewer.dealt, 0.5), "%.4f") + ", in order ";
      notes += number(bench::quantile(fewer.in_order, 0.5), "%.4f");
    }
    bench::print_row(r, bench::quantile(found.dealt, 0.5), bench::quantile(found.dealt, 0.5),
                     "dealt " + median_of(found.dealt) + ", " + notes + "; " + std::to_string(steps.size()) +
                         " steps, " + number(found.seconds * 1e6) + " us a deal");
  };
  measure({"41a", "work of 8 ranks, 8 rows each, largest / mean: a model of width 4,096", 1.02, true}, {},
          false);
  measure({"41b", "the same: attention alone", 1.02, true}, {0, 1}, true);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_main(argc, argv, [](const bench::options& o) {
    const lengths uniform = uniform_lengths();
    const std::filesystem::path file = written(o, "uniform.u32", uniform);
    padding_rows(o, uniform, file);
    speed_rows(o, uniform, file);
    if (!o.keep) std::filesystem::remove(file);
    const std::string path = setting("BENCH_SEQUENCES_LENGTHS");
    if (path.empty()) {
      for (const char* id : {"40c", "40f", "41a", "41b"})
        if (o.wants(id))
          bench::print_skipped({id, "real lengths"}, "BENCH_SEQUENCES_LENGTHS names no file of lengths");
      return;
    }
    const lengths mixed = pieces(read_lengths(path), real_capacity);
    real_rows(o, mixed);
    work_rows(o, mixed);
  });
}
