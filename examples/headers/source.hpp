// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "names.hpp"

#include "support/arrow_text.hpp"
#include "support/ffcv_files.hpp"
#include "support/litdata_files.hpp"
#include "support/zip_writer.hpp"

#include <penstock/audio/channels.hpp>
#include <penstock/codec/arrow_value.hpp>
#include <penstock/codec/audio.hpp>
#include <penstock/codec/ffcv_image.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/json_field.hpp>
#include <penstock/codec/tf_example.hpp>
#include <penstock/codec/tf_example_bytes.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_lz4.hpp>
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/image/values.hpp>
#include <penstock/source/energon.hpp>
#include <penstock/source/idx_gz.hpp>
#include <penstock/source/mds_writer.hpp>
#include <penstock/source/record_files.hpp>
#include <penstock/source/tfrecord_writer.hpp>

#include <zlib.h>

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

namespace {

const made_up_shards files("of_sources", 128, 2);  // train-0000.tar to train-0127.tar

/// The bytes of numbers, one after another.
template <class... T>
std::string packed(const T&... numbers) {
  std::string all;
  const auto add = [&](const auto& number) {
    std::array<char, sizeof number> bytes;
    std::memcpy(bytes.data(), &number, sizeof number);
    all.append(bytes.data(), bytes.size());
  };
  (add(numbers), ...);
  return all;
}

/// A tensor file of one tensor.
std::string safetensors(std::string_view name, std::string_view type, std::string_view shape,
                        std::size_t bytes) {
  std::string head = "{\"";
  head.append(name).append("\":{\"dtype\":\"").append(type).append("\",\"shape\":").append(shape);
  head += ",\"data_offsets\":[0," + std::to_string(bytes) + "]}}";
  head.resize((head.size() + 7) / 8 * 8, ' ');
  return packed(std::uint64_t{head.size()}) + head + std::string(bytes, '\0');
}

/// An npy file of zeros.
template <class T>
std::string npy(const penstock::extents& shape) {
  const std::vector<std::byte> file = penstock::npy_bytes<T>(shape, std::vector<T>(shape.elements()));
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

/// Files of pairs: a number and a text of eight bytes each.
struct pairs {
  static constexpr std::string_view source_name = "pairs";
  struct index {
    std::uint64_t size;
    std::vector<penstock::record_field> names{{"number", "int64"}, {"text", "text"}};
    [[nodiscard]] std::uint64_t records() const { return size / 16; }
    [[nodiscard]] const std::vector<penstock::record_field>& fields() const { return names; }
    [[nodiscard]] penstock::value_place place(std::uint64_t record, std::size_t field) const {
      return {16 * record + 8 * field, 8};
    }
  };
  [[nodiscard]] index read_index(penstock::session_view session, penstock::object_id file) const {
    return {session.size(file)};
  }
};

void write_gzip(const std::string& path, std::string_view bytes) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

void write_idx(const std::string& name, const std::string& bytes) {
  write_file(name, bytes);
  write_gzip(name + ".gz", bytes);
}

const bool has_files = [] {
  namespace fs = std::filesystem;
  using namespace std::string_literals;
  for (const char* folder : {"train", "train/cat", "train/dog", "coco", "coco/.nv-meta", "derived", "cache",
                             "data", "data/train", "shar"})
    fs::create_directory(folder);
  write_file("train/cat/1.jpg", "a cat");
  write_file("train/dog/2.jpeg", "a dog");
  fs::copy_file("train-0000.tar", "coco/0.tar");
  write_file("coco/.nv-meta/.info.json", R"({"shard_counts": {"0.tar": 2}})");
  write_file("coco/.nv-meta/split.yaml", "split_parts:\n  train: [0.tar]\n");
  write_file("shardindex.json",
             R"({"wids_version": 1, "shardlist": [{"url": "train-0000.tar", "nsamples": 2}]})");
  for (const std::string& name : penstock::expand_braces("train-{0000..0127}.tar")) {
    fs::copy_file(name, name + ".gz");  // which are plain: names say nothing
    fs::copy_file(name, name + ".zst");
  }
  for (const auto& name : penstock::expand_braces("captions-{00..15}.txt")) write_file(name, "a dog\n");
  write_file(
      "train.jsonl",
      "{\"audio_filepath\": \"1.flac\", \"duration\": 2.5, \"text\": \"a dog\", \"speaker\": \"ann\"}\n");
  write_file("data/train/wav.scp", "1 sounds/1.flac\n");
  write_file(
      "shar/cuts.000000.jsonl",
      "{\"id\": \"1\", \"type\": \"MonoCut\", \"start\": 0, \"duration\": 2.5, \"speaker\": \"ann\"}\n");
  for (const char* field : {"recording", "target_recording"}) {
    penstock::shard_writer out(std::string("shar/") + field + ".%06d.tar");
    out.write("1", {{"flac", "a dog"}, {"json", "{}"}});
    out.close();
  }
  write_file("corpus.jsonl", "{\"text\": \"a dog\"}\n");

  for (const char* name : {"pairs-0.bin", "pairs-1.bin"}) write_file(name, "12345678ein Text");

  const std::string tokens(10'000, '\1');
  write_file("train.bin", tokens);
  for (const auto& name : penstock::expand_braces("part-{00..63}.bin")) write_file(name, tokens);
  std::string web = packed(20240520, 1, 5'000) + std::string(253 * 4, '\0') + tokens;
  for (const auto& name : penstock::expand_braces("fineweb_train_{000001..000103}.bin"))
    write_file(name, web);
  write_file("openwebtext_text_document.bin", tokens);
  write_file("openwebtext_text_document.idx",
             "MMIDIDX\0\0"s + packed(std::uint64_t{1}, '\10', std::uint64_t{1}, std::uint64_t{2},
                                     std::int32_t{5'000}, std::int64_t{0}, std::int64_t{0}, std::int64_t{1}));

  for (const auto& name : penstock::expand_braces("features-{00..07}.npy"))
    write_file(name, npy<float>(penstock::extents(3, 2)));
  write_file("episode.npy", npy<std::int64_t>(penstock::extents(100)));
  for (const char* name : {"state.npy", "action.npy", "series.npy"})
    write_file(name, npy<float>(penstock::extents(100, 2)));
  for (const auto& name : penstock::expand_braces("images-{00..07}.raw"))
    write_file(name, std::string(std::size_t{2} * 224 * 224 * 3, '\0'));
  const std::string pictures = npy<std::uint8_t>(penstock::extents(2, 28, 28));
  write_file("images.npy", pictures);
  penstock_test::zip_writer mnist;
  for (const auto& name : penstock::expand_braces("part-{00..07}.npz"))
    write_file(name, penstock_test::zip_writer().add("images.npy", pictures).text());
  mnist.add("x_train.npy", pictures).add("y_train.npy", npy<std::uint8_t>(penstock::extents(2)));
  write_file("mnist.npz", mnist.text());
  for (const auto& name : penstock::expand_braces("features-{00..07}.safetensors"))
    write_file(name, safetensors("clip", "F32", "[3,2]", 24));
  write_file("model.safetensors", safetensors("layers.0.bias", "F32", "[6]", 24));
  write_file("tokens.safetensors", safetensors("ids", "I32", "[2,2048]", 2 * 2048 * 4));

  for (const char* folder : {"imagenet", "compressed"}) {
    // The smallest shard has one sample.
    penstock::mds_writer out(folder, {{"image", "jpeg"}, {"label", "int"}}, {.size_limit = 1});
    for (const std::int64_t label : {0, 1})
      out.write({{"image", "a dog"}, {"label", penstock::mds_number(label)}});
    out.close();
  }
  // LitData's: one chunk of one sample, and one of tokens.
  const std::string leaf = R"({\"type\": null, \"context\": null, \"children_spec\": []})";
  const auto chunk = [&](const std::string& folder, const std::string& item, const std::string& config) {
    fs::create_directory(folder);
    write_file(folder + "/chunk-0-0.bin", packed(1u, 12u, static_cast<unsigned>(12 + item.size())) + item);
    write_file(folder + "/index.json",
               R"({"chunks": [{"chunk_bytes": )" + std::to_string(12 + item.size()) +
                   R"(, "chunk_size": 1, "filename": "chunk-0-0.bin"}], "config": {)" + config + "}}");
  };
  chunk("optimized", packed(5u, 8u) + "a dog" + packed(std::int64_t{7}),
        R"("data_format": ["jpeg", "int"], "data_spec": "[1, {\"type\": \"builtins.dict\", )"
        R"(\"context\": \"[\\\"image\\\", \\\"label\\\"]\", \"children_spec\": [)" +
            leaf + ", " + leaf + R"(]}]")");
  fs::copy("optimized", "compressed_chunks");
  for (const auto& [path, bytes] : penstock_test::litdata_oracles)  // rows of Arrow, plain and compressed
    for (const auto& [from, to] :
         {std::pair{"rows/", "dicts/"}, std::pair{"packed_rows/", "compressed_dicts/"}})
      if (path.starts_with(from)) {
        fs::create_directory(to);
        write_file(to + std::string(path.substr(path.find('/') + 1)), std::string(bytes));
      }
  chunk("tokens", std::string(4 * 2049, '\1'),
        R"("data_format": ["no_header_tensor:16"], "item_loader": "TokensLoader")");
  for (const char* name : {"index.json", "shard.00000.mds", "shard.00001.mds"})
    fs::copy_file(std::string("imagenet/") + name, name);

  for (const char* pattern : {"train-{00..15}-of-16.tfrecord", "train-{00..15}.tfrecord.gz"})
    for (const auto& name : penstock::expand_braces(pattern)) {
      penstock::tfrecord_writer out(name);
      out.write(penstock::tf_example_bytes({{"image/encoded", "a dog"}, {"image/class/label", 7}}));
      out.close();
    }
  fs::create_directory("imagenet/train");
  for (const std::string& name : penstock::expand_braces("part-{00..15}.feather"))
    write_file(name, penstock_test::arrow_oracle("zstd.feather"));
  write_file("imagenet/train/data-00000-of-00001.arrow", penstock_test::arrow_oracle("stream.arrow"));
  using ffcv = penstock_test::ffcv_writer;
  write_file("imagenet_train.beton",
             ffcv({{2, "image"}, {1, "label"}})
                 .file({{ffcv::image(true, 1, 1, "rgb"), ffcv::number(std::int64_t{7})}}));
  write_idx("train-images-idx3-ubyte", "\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\3"s + "123456");
  write_idx("train-labels-idx1-ubyte", "\0\0\10\1\0\0\0\2"s + "12");
  return true;
}();

const std::string spring = "train-{0000..0063}.tar", summer = "train-{0064..0127}.tar", web = spring,
                  books = summer;
const auto source = penstock::webdataset(spring);
const auto label = penstock::derive(
    source, "label", [](const auto& sample) { return static_cast<std::int64_t>(sample.key().size()); },
    "derived");
const std::string received = to_string(source.manifest());
const std::vector<float> values = {1, 2, 3};
const std::vector<std::uint64_t> images = {1, 2, 3};
const std::vector<std::int64_t> labels = {4, 5, 6};
const std::string key = "0001", jpeg_bytes = "\377\330";

// What a database gives: here, a stream that has nothing.
penstock::arrow_abi::array_stream stream;
const int database = 0;
const auto query = [](int, const char*) { return penstock::arrow_abi::array_stream(); };

}  // namespace
