// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The formats of components, which `dataset` is given beside those of the core library.
#include <penstock/source/dataset.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/dataset_files.hpp"
#include "support/litdata_files.hpp"
#include "support/mds_files.hpp"
#include "support/test_data.hpp"
#include "support/tf_files.hpp"

#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/energon.hpp>
#include <penstock/source/ffcv.hpp>
#include <penstock/source/idx_gz.hpp>
#include <penstock/source/litdata.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/safetensors.hpp>
#include <penstock/source/tfrecord.hpp>
#include <penstock/storage/memory_files.hpp>

#include <libdeflate.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

namespace ps = penstock;
using namespace penstock_test;

namespace dataset_of_all_test {

template <class... Formats>
auto any(const std::string& path, const Formats&... more) {
  return ps::dataset(path, ps::core_formats{}, ps::mds_format{}, ps::litdata_format{}, ps::tfrecord_format{},
                     ps::safetensors_rows_format{}, ps::idx_gz_format{}, ps::energon_format{}, more...);
}
template <class Sources>
std::string found(const Sources& sources) {
  return std::visit(
      [](const auto& one) { return std::string(one.source_name) + " " + std::to_string(one.size()); },
      sources);
}
std::string gzip(std::string_view bytes) {
  libdeflate_compressor* const packer = libdeflate_alloc_compressor(6);
  std::string packed(libdeflate_gzip_compress_bound(packer, bytes.size()), '\0');
  packed.resize(libdeflate_gzip_compress(packer, bytes.data(), bytes.size(), packed.data(), packed.size()));
  libdeflate_free_compressor(packer);
  return packed;
}
std::string safetensors(std::string_view header, std::size_t bytes) {
  return little_bytes(std::uint64_t{header.size()}) + std::string(header) + std::string(bytes, '\0');
}

}  // namespace dataset_of_all_test

using namespace dataset_of_all_test;

TEST_CASE(
    "source/dataset_of_all: MDS and LitData by their descriptions, with unpackers where they are needed") {
  const mds_folder mosaic;
  CHECK(found(any(mosaic("values"))) == found(ps::dataset(mosaic("values"), ps::mds_format{})));
  CHECK(found(any(mosaic("values"))).starts_with("mds "));
  CHECK_THAT(error_of([&] { static_cast<void>(any(mosaic("zstd"))); }), contains("zstd"));
  CHECK(found(any(mosaic("zstd"), ps::mds_format<ps::unpack_zstd>{})).starts_with("mds "));
  const litdata_folder lightning;
  CHECK(found(any(lightning("values"))).starts_with("litdata "));
  CHECK(found(any(lightning("zstd"), ps::litdata_format<ps::unpack_zstd>{})).starts_with("litdata "));
  CHECK(found(any(lightning("frames"), ps::litdata_format<ps::unpack_zstd>{})).starts_with("litdata "));
  CHECK(found(any(lightning("rows"))).starts_with("arrow_ipc 7"));
  CHECK(found(any(lightning("packed_rows"))).starts_with("arrow_ipc 7"));
  CHECK_THAT(error_of([&] { static_cast<void>(any(lightning("tokens"))); }), contains("litdata_tokens<T>"));
  const dataset_folder folder;
  folder.write("index.json", "{\"nothing\": 1}");
  CHECK_THAT(error_of([&] { static_cast<void>(any(folder())); }), contains("no dataset is recognised here"));
}

TEST_CASE("source/dataset_of_all: sources that know the fields of their samples") {
  static_assert(ps::described_source<ps::mds_source<ps::file>> &&
                ps::described_source<ps::ffcv_source<ps::file>> &&
                ps::described_source<ps::arrow_ipc_source<ps::mapped_file>> &&
                !ps::described_source<ps::webdataset<ps::file>>);
  const auto text_of = [](const auto& source) {
    std::string text;
    for (const ps::source_field& one : source.fields()) text += one.name + " " + one.type + ", ";
    return text;
  };
  const mds_folder mosaic;
  const auto images = ps::mds(mosaic("images"));
  for (const ps::source_field& one : images.fields())
    CHECK_THAT(images.describe(), contains(one.name + " (" + one.type + ")"));
  CHECK(!images.fields().empty());
  const dataset_folder folder;
  CHECK(text_of(ps::ffcv(folder.write("x", ffcv_bytes()))) == "label int64, ");
  const std::string rows = folder.write("x.arrow", arrow_oracle("stream.arrow"));
  CHECK_THAT(text_of(ps::arrow_ipc(rows)), contains("image.bytes binary, image.path string, "));
}

TEST_CASE("source/dataset_of_all: TFRecord by the checksum of the first size") {
  const dataset_folder folder;
  const std::string bytes = tf_records_of({"one", "two", "three"});
  CHECK(found(any(folder.write("x", bytes))) == "tfrecord 3");
  CHECK(found(ps::dataset(ps::memory_files().add("x", bytes), ps::tfrecord_format{})) == "tfrecord 3");
  std::string damaged = bytes;
  damaged[8] ^= 1;
  CHECK_THAT(error_of([&] { static_cast<void>(any(folder.write("y.tfrecord", damaged))); }),
             contains("no dataset is recognised here"));
  CHECK_THAT(error_of([&] { static_cast<void>(any(folder.write("z.tfrecord.gz", gzip(bytes)))); }),
             contains("tfrecord_stream<unpack_gzip>"));
}

TEST_CASE("source/dataset_of_all: safetensors, of several tensors the one that is named") {
  const dataset_folder folder;
  const std::string one = safetensors(R"({"a":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}})", 24);
  const std::string two = safetensors(R"({"a":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
                                      R"("b":{"dtype":"U16","shape":[2],"data_offsets":[24,28]}})",
                                      28);
  CHECK(found(any(folder.write("x", one))) == "safetensors_rows 3");
  const std::string path = folder.write("y", two);
  CHECK_THAT(error_of([&] { static_cast<void>(any(path)); }), contains("several tensors, a, b: name one"));
  CHECK(found(any(path, ps::safetensors_rows_format<>{.tensor = "a"})) == "safetensors_rows 3");
  CHECK_THAT(error_of([&] { static_cast<void>(any(path, ps::safetensors_rows_format<>{.tensor = "b"})); }),
             contains("the dataset holds U16, which is not among the types of safetensors_rows_format<...>"));
  CHECK(found(any(path, ps::safetensors_rows_format<std::uint16_t>{.tensor = "b"})) == "safetensors_rows 2");
  CHECK_THAT(error_of([&] { static_cast<void>(any(folder.write("z", one.substr(0, 9)))); }),
             contains("no dataset is recognised here"));
}

TEST_CASE("source/dataset_of_all: compressed IDX and tar by what is in them") {
  const dataset_folder folder;
  CHECK(found(any(folder.write("x", gzip(idx_bytes({3, 2}, 6))))) == "idx 3");
  CHECK_THAT(error_of([&] { static_cast<void>(any(folder.write("y-idx3-ubyte.gz", gzip("text")))); }),
             contains("no dataset is recognised here"));
  CHECK_THAT(error_of([&] { static_cast<void>(any(folder.write("z-idx3-ubyte.gz", "\x1f\x8b"))); }),
             contains("no dataset is recognised here"));
  const std::string tar = folder.write("t.tar.gz", gzip(shard_bytes(4)));
  CHECK_THAT(error_of([&] { static_cast<void>(any(tar)); }), contains("unpack_gzip"));
  CHECK(found(any(tar, ps::webdataset_format<ps::unpack_gzip>{})) == "webdataset 4");
}

TEST_CASE("source/dataset_of_all: Energon's metadata count more than the shards that they name") {
  const dataset_folder folder;
  folder.write("a-0.tar", shard_bytes(3));
  folder.write("a-1.tar", shard_bytes(2));
  CHECK(found(any(folder())) == "webdataset 5");
  folder.write(".nv-meta/.info.json", R"({"shard_counts": {"a-0.tar": 3, "a-1.tar": 2}})");
  folder.write(".nv-meta/split.yaml",
               "split_parts:\n  train:\n  - a-0.tar\n  val:\n  - a-1.tar\nexclude: []\n");
  CHECK(found(any(folder())) == "webdataset 3");
  CHECK(ps::format_of(ps::dataset_listing(folder()), ps::core_formats{}, ps::energon_format{}) == "energon");
  CHECK(found(any(folder(), ps::energon_format{.part = "val"})) == "webdataset 2");
}

TEST_CASE("source/dataset_of_all: real files") {
  const auto data = test_data("mds");
  if (!data) {
    WARN("no real files: set PENSTOCK_TEST_DATA");
    return;
  }
  const auto at = [&](const char* name) {
    return found(any((data->parent_path() / name).string(),
                     ps::tfrecord_format{.options = {.index = ps::index_policy::transient}}));
  };
  CHECK(at("mds/naive_v1") == "mds 5");
  CHECK(at("mds/naive_v2") == "mds 5");
  CHECK(at("litdata") == "litdata 160");
  CHECK(at("tfrecord/example.tfrecord") == "tfrecord 4");
  CHECK(at("gzip/idx/t10k-images-idx3-ubyte.gz") == "idx 10000");
}
