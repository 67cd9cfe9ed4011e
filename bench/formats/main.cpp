// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows 26 and 27: the samples of other formats, in the page cache, fully shuffled, against the same samples
// in our own tar shards; and against the readers that belong to these formats, in samples a second. Arrow's
// rows against copies of the same rows.

#include "formats/its_reader.hpp"
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
#include <penstock/source/ffcv.hpp>
#include <penstock/source/litdata.hpp>
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
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace {

using bench::against_its_reader, bench::batch_size;

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

/// Writes a file of FFCV with one field of bytes, "bin", as its writer lays it out: pages of 8 MiB, and no
/// sample in two of them.
class ffcv_file {
 public:
  ffcv_file(const std::string& path, std::uint64_t samples)
      : out_(path, std::ios::binary), rows_(ps::detail::to_size(samples) * 16, '\0') {
    out_.seekp(static_cast<std::streamoff>(pages_begin()));
  }
  void write(ps::bytes_view bytes) {
    if (used_ + bytes.size() > page) pad();
    const std::uint64_t at = pages_begin() + pages_ * page + used_, size = bytes.size();
    std::memcpy(rows_.data() + count_ * 16, &at, 8);
    std::memcpy(rows_.data() + count_ * 16 + 8, &size, 8);
    for (const std::uint64_t one : {count_++, at, size})
      table_.append(reinterpret_cast<const char*>(&one), sizeof(one));
    out_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    used_ += bytes.size();
  }
  void close() {
    pad();
    const std::uint64_t table = pages_begin() + pages_ * page;
    out_.write(table_.data(), static_cast<std::streamsize>(table_.size()));
    std::string head(24 + 1041, '\0');
    const std::uint16_t version = 2, fields = 1;
    const auto page_size = static_cast<std::uint32_t>(page);
    std::memcpy(head.data(), &version, 2);
    std::memcpy(head.data() + 2, &fields, 2);
    std::memcpy(head.data() + 4, &page_size, 4);
    std::memcpy(head.data() + 8, &count_, 8);
    std::memcpy(head.data() + 16, &table, 8);
    head.replace(24, 4, "\3bin");
    out_.seekp(0);
    out_.write(head.data(), static_cast<std::streamsize>(head.size()));
    out_.write(rows_.data(), static_cast<std::streamsize>(rows_.size()));
    out_.close();
  }

 private:
  static constexpr std::uint64_t page = std::uint64_t{8} << 20;

  [[nodiscard]] std::uint64_t pages_begin() const {
    return (24 + 1041 + rows_.size() + page - 1) / page * page;
  }
  void pad() {
    const std::string rest(ps::detail::to_size(page - used_), '\0');
    out_.write(rest.data(), static_cast<std::streamsize>(rest.size()));
    ++pages_;
    used_ = 0;
  }

  std::ofstream out_;
  std::string rows_, table_;
  std::uint64_t pages_ = 0, used_ = 0, count_ = 0;
};

/// Writes a folder of LitData's chunks with one value of bytes, "bin", as its writer lays it out.
class litdata_folder {
 public:
  explicit litdata_folder(const std::string& path) : path_(path) { std::filesystem::create_directory(path); }
  void write(ps::bytes_view bytes) {
    const auto size = static_cast<std::uint32_t>(bytes.size());
    begins_.push_back(static_cast<std::uint32_t>(items_.size()));
    items_.append(reinterpret_cast<const char*>(&size), sizeof(size));
    items_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void end_chunk() {
    const auto count = static_cast<std::uint32_t>(begins_.size());
    begins_.push_back(static_cast<std::uint32_t>(items_.size()));
    const auto head = static_cast<std::uint32_t>(sizeof(count) + begins_.size() * sizeof(count));
    for (std::uint32_t& begin : begins_) begin += head;
    const std::string name = "chunk-0-" + std::to_string(chunks_++) + ".bin";
    std::ofstream out(path_ + "/" + name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&count), sizeof(count));
    out.write(reinterpret_cast<const char*>(begins_.data()),
              static_cast<std::streamsize>(begins_.size() * sizeof(count)));
    out.write(items_.data(), static_cast<std::streamsize>(items_.size()));
    list_ += std::string(list_.empty() ? "" : ", ") + R"({"chunk_bytes": )" + std::to_string(items_.size()) +
             R"(, "chunk_size": )" + std::to_string(count) + R"(, "dim": null, "filename": ")" + name + "\"}";
    begins_.clear();
    items_.clear();
  }
  void close() {
    std::ofstream(path_ + "/index.json")
        << R"({"chunks": [)" << list_
        << R"(], "config": {"chunk_bytes": 64000000, "chunk_size": null, "compression": null, )"
           R"("data_format": ["bytes"], "data_spec": "[1, {\"type\": \"builtins.dict\", \"context\": )"
           R"(\"[\\\"bin\\\"]\", \"children_spec\": [{\"type\": null, \"context\": null, )"
           R"(\"children_spec\": []}]}]", "encryption": null, "item_loader": "PyTreeLoader"}, )"
           R"("updated_at": "0"})";
  }

 private:
  std::string path_, items_, list_;
  std::vector<std::uint32_t> begins_;
  std::size_t chunks_ = 0;
};

/// The same samples in tar shards and in the other formats, four files of each, and in one file of FFCV.
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
    ffcv_file ffcv(folder.file("all.beton"), samples);
    litdata_folder litdata(folder.file("litdata"));
    std::uint64_t number = 0;
    for (auto&& one : (ps::webdataset(tar) | ps::fields<"bin"> | ps::workers(0)).epoch(0)) {
      if (number % (samples / files) == 0) {
        if (number != 0) litdata.end_chunk();
        add(records, plain, ".records");
        add(examples, packed, ".examples");
      }
      const ps::bytes_view content = ps::as_bytes(ps::get<"bin">(one));
      mds.write({{"bin", content}});
      ffcv.write(content);
      litdata.write(content);
      plain.back()->write(content);
      packed.back()->write(ps::tf_example_bytes({{"bin", content}}));
      ++number;
    }
    litdata.end_chunk();
    litdata.close();
    mds.close();
    ffcv.close();
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
  auto tar = shuffled(ps::webdataset(made.tar) | ps::fields<"bin"> | ps::shuffle(ps::seed(7)));
  auto mine = shuffled(source);
  auto ours = bench::epochs_of(mine, look);
  auto reference = bench::epochs_of(tar, look_at_field{});
  ours();  // notice that the files are in memory
  reference();
  bench::compare(o, row, ours, reference);
}

using row_ids = std::array<const char*, 10>;

void measure_size(const bench::options& o, std::string_view size, std::uint64_t samples, std::size_t bytes,
                  const row_ids& ids, double times) {
  const same_samples made(o, samples, bytes);
  const std::string what = std::string(size) + " samples shuffled, ";
  const auto id = [&](std::size_t i) { return std::string(ids[i]); };
  using example = ps::tf_example<ps::feature<"bin", ps::bytes>>;
  const auto mds = ps::mds(made.folder.file("mds")) | ps::fields<"bin"> | ps::shuffle(ps::seed(7));
  const auto ffcv = ps::ffcv(made.folder.file("all.beton")) | ps::fields<"bin"> | ps::shuffle(ps::seed(7));
  const auto litdata =
      ps::litdata(made.folder.file("litdata")) | ps::fields<"bin"> | ps::shuffle(ps::seed(7));
  const auto records = ps::tfrecord(made.records) | ps::shuffle(ps::seed(7));
  const auto unchecked = ps::tfrecord(made.records, {.check = false}) | ps::shuffle(ps::seed(7));
  const auto examples = ps::tfrecord(made.examples) | ps::decode<example> | ps::shuffle(ps::seed(7));
  against_tar(o, {id(0), what + "MDS, 2 workers / our own tar", 0.9}, made, mds, look_at_field{});
  against_tar(o, {id(1), what + "TFRecord, 2 workers / our own tar", 0.9}, made, records, look_at_values{});
  against_tar(o, {id(2), what + "TFRecord without checksums / our own tar", 0}, made, unchecked,
              look_at_values{});
  against_tar(o, {id(3), what + "TFRecord of examples, a feature / our own tar", 0}, made, examples,
              look_at_field{});
  against_its_reader(o, {id(4), what + "MDS, 1 worker / StreamingDataset, 1 worker", times}, mds,
                     look_at_field{}, samples, "BENCH_STREAMING_PYTHON",
                     "mds '" + made.folder.file("mds") + "'");
  against_tar(o, {id(6), what + "FFCV's file, 2 workers / our own tar", 0.9}, made, ffcv, look_at_field{});
  std::string paths;
  for (const std::string& one : made.examples) paths += " '" + one + "'";
  against_its_reader(o,
                     {id(5), what + "TFRecord of examples, 1 worker / the package tfrecord, 1 worker", times},
                     examples, look_at_field{}, samples, "BENCH_TFRECORD_PYTHON", "tfrecord" + paths);
  against_tar(o, {id(7), what + "LitData, 2 workers / our own tar", 0.9}, made, litdata, look_at_field{});
  against_its_reader(o, {id(8), what + "LitData, 1 worker / its StreamingDataset, 1 worker", times}, litdata,
                     look_at_field{}, samples, "BENCH_LITDATA_PYTHON",
                     "litdata '" + made.folder.file("litdata") + "'");
  against_its_reader(o, {id(9), what + "FFCV's file, 1 worker / its Loader, 1 worker", times}, ffcv,
                     look_at_field{}, samples, "BENCH_FFCV_PYTHON",
                     "ffcv '" + made.folder.file("all.beton") + "'");
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
    return (source | ps::shuffle(ps::seed(7)) |
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
  const auto any = [&](const auto& ids) {
    return std::ranges::any_of(ids, [&](const char* id) { return o.wants(id); });
  };
  constexpr row_ids small{"26a", "26b", "26c", "26d", "26e", "26f", "26t", "27a", "27b", "27c"};
  constexpr row_ids large{"26g", "26h", "26i", "26j", "26k", "26l", "26u", "27d", "27e", "27f"};
  if (any(small)) measure_size(o, "1 KB", o.quick ? 20'000 : 200'000, 1024, small, 20);
  if (any(large)) measure_size(o, "110 KB", o.quick ? 512 : 4'096, 110'000, large, 2);
  if (any(std::array{"26m", "26n"})) measure_arrow(o);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
