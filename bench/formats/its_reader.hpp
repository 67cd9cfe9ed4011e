// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/harness.hpp"
#include "support/program.hpp"

#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace bench {

namespace ps = penstock;

inline constexpr std::size_t batch_size = 64;

/// Our samples a second against those of a format's own reader in Python.
template <class Source, class Look>
void against_its_reader(const options& o, const row& row, const Source& source, Look look,
                        std::uint64_t samples, const char* variable, const std::string& arguments,
                        std::size_t rows = batch_size) {
  if (!o.wants(row.id)) return;
  const char* const python = std::getenv(variable);
  const char* const scripts = std::getenv("BENCH_FORMATS_SCRIPTS");
  if (python == nullptr || scripts == nullptr) {
    print_skipped(row,
                  std::string(variable) + " is not set; run.sh sets it where the reader can be installed");
    return;
  }
  const std::string command = "'" + std::string(python) + "' '" + scripts + "/reader_rate.py' " + arguments;
  auto run = (source | ps::batch(rows) | ps::workers(1)).open();
  auto epoch = epochs_of(run, look);
  epoch();
  std::vector<double> ratios, ours, theirs;
  for (int pair = 0; pair < std::min(o.pairs, 7); ++pair) {
    const double begin = seconds_now();
    epoch();
    ours.push_back(static_cast<double>(samples) / (seconds_now() - begin));
    theirs.push_back(rate_of_program(command));
    if (theirs.back() <= 0) {
      print_skipped(row, "the reader failed: " + command);
      return;
    }
    ratios.push_back(ours.back() / theirs.back());
  }
  print_row(row, quantile(ratios, 0.25), quantile(ratios, 0.5),
            "ours " + std::to_string(static_cast<long>(quantile(ours, 0.5))) + "/s, reader " +
                std::to_string(static_cast<long>(quantile(theirs, 0.5))) + "/s, " +
                std::to_string(ratios.size()) + " pairs");
}

}  // namespace bench
