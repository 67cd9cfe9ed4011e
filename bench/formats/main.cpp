// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows 26: the samples of other formats, in the page cache, fully shuffled, against the same samples in our
// own tar shards; and against the readers that belong to these formats, in samples a second. Arrow's rows
// against copies of the same rows.

#include "support/folder.hpp"
#include "support/harness.hpp"
#include "support/program.hpp"

#include <penstock/codec/arrow_value.hpp>
#include <penstock/codec/identity.hpp>
#include <penstock/codec/tf_example.hpp>
#include <penstock/codec/tf_example_bytes.hpp>
#include <penstock/core/record.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/mds_writer.hpp>
#include <penstock/source/tfrecord.hpp>
#include <penstock/source/tfrecord_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t batch_size = 64;

/// The first words of the rows of a column.
template <class Column>
std::uint64_t look_at(const Column& values, std::size_t rows) {
  return bench::first_words(reinterpret_cast<const std::byte*>(values.data()), rows,
                            static_cast<std::size_t>(values.shape()[1]));
}
struct look_at_field {
  template <class Batch>
  std::uint64_t operator()(Batch& b) const {
    return look_at(ps::get<"bin">(b), b.size());
  }
};
struct look_at_values {
  template <class Batch>
  std::uint64_t operator()(Batch& b) const {
    return look_at(b.values(), b.size());
  }
};

/// The same samples in tar shards and in the other formats, four files of each.
struct same_samples {
  bench::folder folder;
  std::vector<std::string> tar, records, examples;

  same_samples(const bench::options& o, std::uint64_t samples, std::size_t bytes)
      : folder(o, "formats_" + std::to_string(bytes)),
        tar(bench::write_shards(folder, files, samples / files, bytes, false)) {
    ps::mds_writer mds(folder.file("mds"), {{"bin", "bytes"}}, {.size_limit = samples / files * (bytes + 8)});
    std::vector<std::unique_ptr<ps::tfrecord_writer>> plain, packed;
    const auto add = [&](std::vector<std::string>& paths, auto& writers, const char* ending) {
      paths.push_back(folder.file(std::to_string(paths.size()) + ending));
      writers.push_back(std::make_unique<ps::tfrecord_writer>(paths.back()));
    };
    std::uint64_t number = 0;
    for (auto&& one : (ps::webdataset(tar) | ps::fields<"bin"> | ps::workers(0)).epoch(0)) {
      if (number++ % (samples / files) == 0) {
        add(records, plain, ".records");
        add(examples, packed, ".examples");
      }
      const ps::bytes_view content = ps::as_bytes(ps::get<"bin">(one));
      mds.write({{"bin", content}});
      plain.back()->write(content);
      packed.back()->write(ps::tf_example_bytes({{"bin", content}}));
    }
    mds.close();
    for (auto& one : plain) one->close();
    for (auto& one : packed) one->close();
  }

 private:
  static constexpr std::uint64_t files = 4;
};

template <class Source, class Look>
void against_tar(const bench::options& o, const bench::row& row, const same_samples& made,
                 const Source& source, Look look) {
  if (!o.wants(row.id)) return;
  const auto shuffled = [](const auto& samples) {
    return (samples | ps::batch(batch_size) | ps::workers(2)).open();
  };
  auto tar = shuffled(ps::webdataset(made.tar) | ps::fields<"bin"> | ps::shuffle(7));
  auto mine = shuffled(source);
  auto ours = bench::epochs_of(mine, look);
  auto reference = bench::epochs_of(tar, look_at_field{});
  ours();  // notice that the files are in memory
  reference();
  bench::compare(o, row, ours, reference);
}

/// Our samples a second against those of a format's own reader in Python.
template <class Source, class Look>
void against_its_reader(const bench::options& o, const bench::row& row, const Source& source, Look look,
                        std::uint64_t samples, const char* variable, const std::string& arguments) {
  if (!o.wants(row.id)) return;
  const char* const python = std::getenv(variable);
  const char* const scripts = std::getenv("BENCH_FORMATS_SCRIPTS");
  if (python == nullptr || scripts == nullptr) {
    bench::print_skipped(
        row, std::string(variable) + " is not set; run.sh sets it where the reader can be installed");
    return;
  }
  const std::string command = "'" + std::string(python) + "' '" + scripts + "/reader_rate.py' " + arguments;
  auto run = (source | ps::batch(batch_size) | ps::workers(1)).open();
  auto epoch = bench::epochs_of(run, look);
  epoch();
  std::vector<double> ratios, ours, theirs;
  for (int pair = 0; pair < std::min(o.pairs, 7); ++pair) {
    const double begin = bench::seconds_now();
    epoch();
    ours.push_back(static_cast<double>(samples) / (bench::seconds_now() - begin));
    theirs.push_back(bench::rate_of_program(command));
    if (theirs.back() <= 0) {
      bench::print_skipped(row, "the reader failed: " + command);
      return;
    }
    ratios.push_back(ours.back() / theirs.back());
  }
  bench::print_row(row, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5),
                   "ours " + std::to_string(static_cast<long>(bench::quantile(ours, 0.5))) + "/s, reader " +
                       std::to_string(static_cast<long>(bench::quantile(theirs, 0.5))) + "/s, " +
                       std::to_string(ratios.size()) + " pairs");
}

void measure_size(const bench::options& o, std::string_view size, std::uint64_t samples, std::size_t bytes,
                  const char* letters, double times) {
  const same_samples made(o, samples, bytes);
  const std::string what = std::string(size) + " samples shuffled, ";
  const auto id = [&](std::size_t i) { return std::string("26") + letters[i]; };
  using example = ps::tf_example<ps::feature<"bin", ps::bytes>>;
  const auto mds = ps::mds(made.folder.file("mds")) | ps::fields<"bin"> | ps::shuffle(7);
  const auto records = ps::tfrecord(made.records) | ps::shuffle(7);
  const auto unchecked = ps::tfrecord(made.records, {.check = false}) | ps::shuffle(7);
  const auto examples = ps::tfrecord(made.examples) | ps::decode<example> | ps::shuffle(7);
  against_tar(o, {id(0), what + "MDS, 2 workers / our own tar", 0.9}, made, mds, look_at_field{});
  against_tar(o, {id(1), what + "TFRecord, 2 workers / our own tar", 0.9}, made, records, look_at_values{});
  against_tar(o, {id(2), what + "TFRecord without checksums / our own tar", 0}, made, unchecked,
              look_at_values{});
  against_tar(o, {id(3), what + "TFRecord of examples, a feature / our own tar", 0}, made, examples,
              look_at_field{});
  against_its_reader(o, {id(4), what + "MDS, 1 worker / StreamingDataset, 1 worker", times}, mds,
                     look_at_field{}, samples, "BENCH_STREAMING_PYTHON",
                     "mds '" + made.folder.file("mds") + "'");
  std::string paths;
  for (const std::string& one : made.examples) paths += " '" + one + "'";
  against_its_reader(o,
                     {id(5), what + "TFRecord of examples, 1 worker / the package tfrecord, 1 worker", times},
                     examples, look_at_field{}, samples, "BENCH_TFRECORD_PYTHON", "tfrecord" + paths);
}

/// Rows of Arrow files, whose columns are of fixed size, against loops that copy the same rows in the same
/// order: one in the consumer's thread, and two threads against two workers.
void measure_arrow(const bench::options& o) {
  const std::string what = "Arrow, columns of 1 KB and 8 B shuffled, batches of 256, ";
  const bench::row alone{"26m", what + "no worker / memcpy of the rows", 0.8};
  const bench::row pair{"26n", what + "2 workers / memcpy in two threads", 0.8};
  const char* const python = std::getenv("BENCH_ARROW_PYTHON");
  const char* const scripts = std::getenv("BENCH_FORMATS_SCRIPTS");
  if (python == nullptr || scripts == nullptr) {
    for (const bench::row& row : {alone, pair})
      bench::print_skipped(row,
                           "BENCH_ARROW_PYTHON is not set; run.sh sets it where pyarrow can be installed");
    return;
  }
  constexpr std::size_t batch = 256, bytes = 1024, row_bytes = bytes + sizeof(std::int64_t);
  const std::uint64_t samples = (o.quick ? 20'000 : 200'000) / (2 * batch) * (2 * batch);
  const bench::folder folder(o, "formats_arrow");
  const std::string path = folder.file("rows.arrow");
  if (bench::rate_of_program("'" + std::string(python) + "' '" + scripts + "/write_arrow.py' '" + path +
                             "' " + std::to_string(samples) + " " + std::to_string(bytes)) <= 0)
    return bench::print_skipped(alone, "pyarrow failed to write the file");
  const auto source = ps::arrow_ipc(path);
  const auto run_of = [&](std::size_t workers) {
    return (source | ps::shuffle(7) |
            ps::decode<ps::field<"bin", ps::arrow_array<std::uint8_t>>,
                       ps::field<"label", ps::arrow_value<std::int64_t>>> |
            ps::batch(batch) | ps::workers(workers))
        .open();
  };
  // Where the rows are in the mapped file, in the order of an epoch.
  struct place {
    const std::byte *bin, *label;
  };
  std::vector<place> places, order;
  const auto reader = source.connect();
  typename decltype(source.connect())::worker worker;
  for (std::uint64_t i = 0; i < samples; ++i)
    reader.evaluate({0, i}, worker, [&](const auto& one) {
      const ps::arrow_slice list = one.member(0).cell().list();
      places.push_back(
          {ps::arrow_cell(*list.column, list.first).bytes().data(), one.member(1).cell().bytes().data()});
    });
  auto single = run_of(0), both = run_of(2);
  for (auto&& b : single.epoch(0))
    for (const std::int64_t label : ps::get<"label">(b))
      order.push_back(places[static_cast<std::size_t>(label)]);
  // Several batches in turn, as a run has them.
  constexpr std::size_t slots = 4;
  const auto copy = [&](std::vector<std::byte>& into, std::size_t begin, std::size_t end) {
    std::uint64_t seen = 0;
    for (std::size_t first = begin; first < end; first += batch) {
      std::byte* const rows = into.data() + first / batch % slots * batch * row_bytes;
      for (std::size_t i = 0; i < batch; ++i) {
        std::memcpy(rows + i * bytes, order[first + i].bin, bytes);
        std::memcpy(rows + batch * bytes + i * sizeof(std::int64_t), order[first + i].label,
                    sizeof(std::int64_t));
      }
      seen += bench::first_words(rows, batch, bytes);
    }
    return seen;
  };
  std::vector<std::byte> one(slots * batch * row_bytes), other(slots * batch * row_bytes);
  const auto in_one_thread = [&] { return copy(one, 0, order.size()); };
  const auto in_two_threads = [&] {
    return bench::on_two_threads([&](int half) {
      const std::size_t middle = order.size() / 2;
      return half == 0 ? copy(one, 0, middle) : copy(other, middle, order.size());
    });
  };
  auto ours_alone = bench::epochs_of(single, look_at_field{}),
       ours_both = bench::epochs_of(both, look_at_field{});
  ours_alone();
  ours_both();
  bench::compare(o, alone, ours_alone, in_one_thread);
  bench::compare(o, pair, ours_both, in_two_threads);
}

void measure(const bench::options& o) {
  const auto any = [&](const char* letters) {
    for (; *letters != 0; ++letters)
      if (o.wants(std::string("26") + *letters)) return true;
    return false;
  };
  if (any("abcdef")) measure_size(o, "1 KB", o.quick ? 20'000 : 200'000, 1024, "abcdef", 20);
  if (any("ghijkl")) measure_size(o, "110 KB", o.quick ? 512 : 4'096, 110'000, "ghijkl", 2);
  if (any("mn")) measure_arrow(o);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
