// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A file that was replaced by another one of the same size and time is not read by what is known of the
// first: tar programs pad archives to 10 KiB, and reproducible ones have constant times. A copy with its time
// is the same file.

#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/dali_index.hpp>
#include <penstock/source/energon_index.hpp>
#include <penstock/source/ffcv.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/tfrecord.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/source/unpacked.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/dataset_files.hpp"
#include "support/raw_tar.hpp"
#include "support/tf_files.hpp"

#include <libdeflate.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace replaced_files_test {

/// A file whose time stays as it is.
struct fixed_file {
  dataset_folder folder;
  std::string path;

  fixed_file(std::string_view name, std::string_view bytes) : path(folder.write(name, bytes)) {}
  void replace(std::string_view bytes) const {
    REQUIRE(std::filesystem::file_size(path) == bytes.size());
    const auto time = std::filesystem::last_write_time(path);
    folder.write(std::filesystem::path(path).filename().string(), bytes);
    std::filesystem::last_write_time(path, time);
  }
  /// The same bytes in another file, with the time.
  void copy() const {
    const auto time = std::filesystem::last_write_time(path);
    std::filesystem::copy_file(path, path + ".copy");
    std::filesystem::rename(path + ".copy", path);
    std::filesystem::last_write_time(path, time);
  }
};

/// A shard as GNU tar writes it: padded to 10 KiB.
std::string padded_shard(const std::vector<std::pair<std::string, std::string>>& members) {
  raw_tar tar;
  for (const auto& [name, content] : members) tar.member(name, content, '0', raw_tar::dialect::gnu);
  tar.end();
  tar.bytes.resize((tar.bytes.size() + 10239) / 10240 * 10240);
  return tar.bytes;
}
const std::string shard = padded_shard({{"a.txt", "one"}, {"a.cls", "1"}, {"b.txt", "two"}, {"b.cls", "2"}});

std::string first_error(const std::function<void()>& read) {
  try {
    read();
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::io);
    CHECK(e.recurs());
    CHECK(std::string_view(e.what()).find('\n') == std::string_view::npos);
    return e.what();
  }
  return "none";
}
/// Reads all samples of a plan, of which any type may come.
template <class Plan>
void read_all_of(const Plan& plan) {
  auto run = (plan | ps::map([](const auto&) { return 1; }) | ps::batch(2)).open();
  for (auto&& b : run) static_cast<void>(b.size());
}
/// What a run says if a file is replaced after the plan was made, and that it says nothing of a copy.
template <class Make>
std::string error_after_plan(const fixed_file& file, std::string_view other, const Make& make) {
  const auto plan = make(file.path);
  CHECK(first_error([&] { read_all_of(plan); }) == "none");
  file.copy();
  CHECK(first_error([&] { read_all_of(plan); }) == "none");
  file.replace(other);
  return first_error([&] { read_all_of(plan); });
}

}  // namespace replaced_files_test
using namespace replaced_files_test;

TEST_CASE("source/replaced_files: a shard of the same size and time is not read by the old index") {
  const std::string other = GENERATE_COPY(
      // other sizes, other keys, other places; and only the last member differs
      padded_shard({{"a.txt", "three"}, {"a.cls", "1"}, {"b.txt", "two"}, {"b.cls", "2"}}),
      padded_shard({{"c.txt", "one"}, {"c.cls", "1"}, {"d.txt", "two"}, {"d.cls", "2"}}),
      padded_shard({{"a.txt", std::string(700, 'x')}, {"a.cls", "1"}, {"b.txt", "two"}, {"b.cls", "2"}}),
      padded_shard({{"a.txt", "one"}, {"a.cls", "1"}, {"b.txt", "two"}, {"b.cls", "22"}}),
      std::string(10240, 'x'));
  const fixed_file file("s.tar", shard);
  const auto policy = GENERATE(ps::index_policy::keep, ps::index_policy::require, ps::index_policy::cache,
                               ps::index_policy::transient);
  const ps::webdataset_options options{.index = policy, .index_folder = file.folder("indexes")};
  if (policy == ps::index_policy::require)
    static_cast<void>(ps::webdataset(file.path, {.index = ps::index_policy::keep}));
  const ps::webdataset plan(file.path, options);
  const auto read = [&](const auto& source) {
    read_all_of(source | ps::fields<"txt", "cls"> | ps::map([](const auto&) { return 1; }));
  };
  CHECK(first_error([&] { read(plan); }) == "none");
  file.copy();
  CHECK(first_error([&] { read(plan); }) == "none");
  CHECK(first_error([&] { read(ps::webdataset(file.path, options)); }) == "none");

  file.replace(other);
  const std::string said = first_error([&] { read(plan); });
  CHECK_THAT(said, contains("s.tar") && contains("replaced by another one of the same size and time"));
  if (policy == ps::index_policy::transient) {
    CHECK_THAT(said, contains("open the dataset again"));
  } else {
    CHECK_THAT(said, contains(".penstock-index") && contains("delete the index and open the dataset again"));
    // a plan of another process says it, too, and none makes the index again in silence
    CHECK_THAT(first_error([&] { read(ps::webdataset(file.path, options)); }),
               contains("same size and time"));
    CHECK_THAT(first_error([&] { read(ps::webdataset(ps::mapped_file(file.path), options)); }),
               contains("same size and time"));
  }
  // it is no bad sample
  CHECK_THAT(first_error([&] {
               auto run = (plan | ps::fields<"txt"> | ps::bad_samples::skip(10) | ps::batch(1)).open();
               for (auto&& b : run) static_cast<void>(b.size());
             }),
             contains("same size and time"));
}

TEST_CASE("source/replaced_files: after the old index was deleted, the other shard is read") {
  const fixed_file file("s.tar", shard);
  static_cast<void>(ps::webdataset(file.path, {.index = ps::index_policy::keep}));
  file.replace(padded_shard({{"x.txt", "four"}, {"y.txt", "five"}, {"z.txt", "six"}}));
  std::filesystem::remove(file.path + ".penstock-index");
  const ps::webdataset again(file.path);
  CHECK(again.size() == 3);
  CHECK(first_error([&] { read_all_of(again | ps::fields<"txt">); }) == "none");
}

TEST_CASE("source/replaced_files: other programs' indexes") {
  const bool dali = GENERATE(true, false);
  const fixed_file file("s.tar", shard);
  const std::string index = file.folder(dali ? "s.idx" : "s.tar.idx");
  if (dali)
    file.folder.write("s.idx",
                      "v1.2 2\ntxt 512 3 a.txt cls 1536 1 a.cls\ntxt 2560 3 b.txt cls 3584 1 b.cls\n");
  else
    file.folder.write("s.tar.idx", little_bytes(std::uint64_t{0}) + little_bytes(std::uint64_t{2048}) +
                                       little_bytes(std::uint64_t{4096}));
  const ps::webdataset plan(file.path, {.index = dali ? ps::dali_index : ps::energon_index});
  CHECK(first_error([&] { read_all_of(plan | ps::fields<"txt">); }) == "none");
  file.replace(padded_shard({{"a.txt", "one"}, {"a.cls", "1"}, {"b.txt", "twice"}, {"b.cls", "22"}}));
  CHECK_THAT(first_error([&] { read_all_of(plan | ps::fields<"txt">); }),
             contains(index) && contains("make the index again"));
}

TEST_CASE("source/replaced_files: the ends of ordinary archives agree without a walk over all headers") {
  const auto agree = [](const penstock::detail::shard_kind& kind, const std::string& bytes,
                        const std::string& indexed) {
    const auto files = ps::memory_files().add("x", bytes).add("y", indexed);
    const auto session = files.connect();
    const ps::buffer index = kind.build(session, 1, "y", 1 << 20, {}, {});
    return kind.has_ends(session, 0, *penstock::detail::shard_index::over(index.view()));
  };
  for (const auto kind : {raw_tar::dialect::v7, raw_tar::dialect::ustar, raw_tar::dialect::gnu})
    for (const int samples : {1, 2, 3, 4, 5, 20, 300}) {
      INFO(static_cast<int>(kind) << ' ' << samples);
      raw_tar one, other;
      for (int i = 0; i < samples; ++i)
        for (raw_tar* const to : {&one, &other}) {
          const std::string key = "folder/" + std::to_string(i), last = to == &other ? "xy" : "x";
          to->member(key + ".JPG", std::string(static_cast<std::size_t>(i % 7) * 300, 'x'), '0', kind);
          to->member(key + ".cls", i + 1 == samples ? last : "x", '0', kind);
        }
      one.end();
      other.end();
      CHECK(agree(penstock::detail::tar_shards(), one.bytes, one.bytes));
      CHECK_FALSE(agree(penstock::detail::tar_shards(), one.bytes, other.bytes));
      CHECK(agree(penstock::detail::tar_shards(), other.bytes, other.bytes));
    }
  const std::string records = tf_records_of({"one", "three", "five"});
  CHECK(agree(ps::detail::tf_record_files(), records, records));
  CHECK_FALSE(agree(ps::detail::tf_record_files(), records, tf_records_of({"three", "one", "five"})));
}

TEST_CASE("source/replaced_files: archives with unusual headers are no others") {
  raw_tar tar;
  // a size and a name of extension headers, where the header itself has others
  tar.pax('x', "10 size=3\n").member("a.txt", "one").patch(124, "00000000007").pax('x', "14 path=b.txt\n");
  tar.member("odd name", "two").end();
  const fixed_file file("s.tar", tar.bytes);
  const ps::webdataset plan(file.path);
  REQUIRE(plan.size() == 2);
  CHECK(first_error([&] { read_all_of(plan | ps::fields<"txt">); }) == "none");
  CHECK(first_error([&] { read_all_of(ps::webdataset(file.path) | ps::fields<"txt">); }) == "none");
}

TEST_CASE("source/replaced_files: TFRecord") {
  const fixed_file file("x.tfrecord", tf_records_of({"one", "three", "five"}));
  const auto make = [](const std::string& path) {
    return ps::tfrecord(path, {.index = ps::index_policy::keep});
  };
  CHECK_THAT(error_after_plan(file, tf_records_of({"three", "one", "five"}), make),
             contains("x.tfrecord.penstock-index") && contains("delete the index"));
}

TEST_CASE("source/replaced_files: files of rows, lines, tokens and tables") {
  const std::string_view said =
      "replaced after the dataset was opened, by another one of the same size and time";
  SECTION("npy_rows") {
    const fixed_file file("x.npy", npy_text<float>(ps::extents{4, 6}));
    CHECK_THAT(error_after_plan(file, npy_text<float>(ps::extents{6, 4}),
                                [](const std::string& path) { return ps::npy_rows<float>(path); }),
               contains(std::string(said)) && contains("x.npy"));
  }
  SECTION("lines") {
    const fixed_file file("x.txt", "one\ntwo\nthree\n");
    CHECK_THAT(
        error_after_plan(file, "three\none\ntwo\n", [](const std::string& path) { return ps::lines(path); }),
        contains(std::string(said)));
  }
  SECTION("tokens") {
    const fixed_file file("x.bin", std::string(2000, 'a'));
    CHECK_THAT(error_after_plan(file, std::string(2000, 'b'),
                                [](const std::string& path) {
                                  return ps::raw_tokens<std::uint16_t>(path, ps::token_window<10>{});
                                }),
               contains(std::string(said)));
  }
  SECTION("FFCV") {
    const ffcv_writer writer({{1, "label"}});
    const auto of = [&](std::uint64_t label) {
      return writer.file({{ffcv_writer::number(label)}, {ffcv_writer::number(label + 1)}}, true);
    };
    const fixed_file file("x.beton", of(5));
    CHECK_THAT(error_after_plan(file, of(7),
                                [](const std::string& path) { return ps::ffcv(path) | ps::fields<"label">; }),
               contains(std::string(said)));
  }
  SECTION("Arrow") {
    const std::string bytes(arrow_oracle("file.arrow"));
    std::string other = bytes;
    other[other.size() - 20] ^= 1;
    const fixed_file file("x.arrow", bytes);
    CHECK_THAT(error_after_plan(file, other, [](const std::string& path) { return ps::arrow_ipc(path); }),
               contains(std::string(said)));
  }
}

TEST_CASE("source/replaced_files: a copy of a packed file is of that file") {
  const auto gzip = [](std::string_view bytes) {
    libdeflate_compressor* const packer = libdeflate_alloc_compressor(0);  // stored: of one size
    std::string packed(libdeflate_gzip_compress_bound(packer, bytes.size()), '\0');
    packed.resize(libdeflate_gzip_compress(packer, bytes.data(), bytes.size(), packed.data(), packed.size()));
    libdeflate_free_compressor(packer);
    return packed;
  };
  const fixed_file file("s.tar.gz", gzip(shard));
  const auto copies = [&] { return ps::unpacked<ps::unpack_gzip>(file.path); };
  const std::string copy = copies().front();
  CHECK(ps::webdataset(copies()).manifest().shards()[0].samples == 2);
  const auto before = std::filesystem::last_write_time(copy);
  file.copy();
  CHECK(copies().front() == copy);
  CHECK(std::filesystem::last_write_time(copy) == before);
  file.replace(gzip(padded_shard({{"x.txt", "1"}, {"y.txt", "2"}, {"z.txt", "3"}})));
  CHECK(ps::webdataset(copies()).manifest().shards()[0].samples == 3);
}

TEST_CASE("source/replaced_files: nothing is read of what a tag of its bytes tells apart") {
  const auto reads_of_first_use = [](const auto& far) {
    const ps::webdataset plan(far, {.index = ps::index_policy::transient});
    const std::uint64_t before = far.reads();
    CHECK(plan.connect().key(1) == "b");
    return far.reads() - before;
  };
  // objects in memory never change; files do, and the ends of a small shard are read at once
  CHECK(reads_of_first_use(ps::simulated_storage(ps::memory_files().add("s.tar", shard))) == 0);
  const fixed_file file("s.tar", shard);
  CHECK(reads_of_first_use(ps::simulated_storage(ps::file(file.path))) == 1);
}
