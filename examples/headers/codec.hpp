// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "names.hpp"

#include "support/arrow_text.hpp"
#include "support/ffcv_files.hpp"
#include "support/fixtures.hpp"

#include <penstock/codec/audio.hpp>
#include <penstock/codec/bpe.hpp>
#include <penstock/codec/gzip.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/jpeg_encoder.hpp>
#include <penstock/codec/json.hpp>
#include <penstock/codec/json_field.hpp>
#include <penstock/codec/lz4.hpp>
#include <penstock/codec/sentencepiece.hpp>
#include <penstock/codec/tf_example_bytes.hpp>
#include <penstock/codec/unpack_brotli.hpp>
#include <penstock/codec/unpack_bzip2.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_snappy.hpp>
#include <penstock/codec/unpack_xz.hpp>
#include <penstock/codec/video.hpp>
#include <penstock/codec/zstd.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/ffcv.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/mds_writer.hpp>
#include <penstock/source/tfrecord.hpp>
#include <penstock/source/tfrecord_writer.hpp>

namespace {

const made_up_shards files("of_codecs", 128, 2);  // train-0000.tar to train-0127.tar

const std::vector<float> values = {1, 2, 3, 4, 5, 6};
const std::vector<std::byte> file_bytes = penstock::npy_bytes<float>(penstock::extents(2, 3), values);
const std::string jpeg_bytes = "\377\330";
const auto records = penstock::from(std::vector<std::vector<std::byte>>{file_bytes});
const auto films = penstock::zip<"mp4">(records);  // for plans that are made and not opened

const bool has_files = [] {
  for (const std::string folder :
       // for plans that are made and not opened
       {"pictures", "raw", "cifar", "depths", "clips", "scans", "speech"}) {
    std::filesystem::create_directories(folder + "/cats");
    write_file(folder + "/cats/1.png", "");
  }
  write_file("boxes.jsonl", "{\"box\": [1, 2, 3.5]}\n");
  write_file("corpus.jsonl", "{\"text\": \"a dog\"}\n");
  write_file("corpus.txt", "a dog\n");
  for (const auto& [from, to] :
       {std::pair("gpt.tokenizer", "tokenizer.json"), std::pair("unigram.model", "tokenizer.model")})
    std::filesystem::copy_file(penstock_test::fixture("tokenizers") / from, to,
                               std::filesystem::copy_options::overwrite_existing);
  write_file("reviews.jsonl", "{\"text\": \"a dog\", \"label\": 7}\n");
  for (const std::string& name : penstock::expand_braces("train-{0000..0127}.tar"))
    for (const char* suffix : {".gz", ".zst", ".lz4", ".bz2", ".xz"})
      std::filesystem::copy_file(name, name + suffix);  // which are plain: names say nothing
  for (const std::string& name : penstock::expand_braces("train-{00..15}-of-16.tfrecord")) {
    penstock::tfrecord_writer out(name);
    out.write(penstock::tf_example_bytes({{"image/encoded", "a dog"}, {"label", 7}}));
    out.close();
  }
  for (const std::string& name : penstock::expand_braces("videos-{00..15}-of-16.tfrecord")) {
    penstock::tfrecord_writer out(name);
    out.write(penstock::tf_example_bytes({{"label", 7}}));
    out.close();
  }
  penstock::mds_writer packed("packed", {{"label", "int"}});
  packed.write({{"label", penstock::mds_number(std::int64_t{7})}});
  packed.close();
  using ffcv = penstock_test::ffcv_writer;
  write_file("imagenet_train.beton", ffcv({{2, "image"}}).file({{ffcv::image(true, 1, 1, "rgb")}}));
  write_file("train.arrow", penstock_test::arrow_oracle("file.arrow"));
  return true;
}();

}  // namespace
