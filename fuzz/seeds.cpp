// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Writes what each fuzzer begins with: seeds <folder> makes <folder>/<target>/<number>, the same on every
// run.

#include <penstock/codec/gzip.hpp>
#include <penstock/codec/jpeg_encoder.hpp>
#include <penstock/codec/json.hpp>
#include <penstock/codec/lz4.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/codec/png_encoder.hpp>
#include <penstock/codec/tf_example_bytes.hpp>
#include <penstock/codec/unpack_bzip2.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_lz4.hpp>
#include <penstock/codec/unpack_xz.hpp>
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/codec/webp_encoder.hpp>
#include <penstock/codec/zstd.hpp>
#include <penstock/run/state.hpp>
#include <penstock/source/idx_gz.hpp>
#include <penstock/source/records/index_builder.hpp>
#include <penstock/source/tar/tar_shards.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/arrow_text.hpp"
#include "support/avro_bytes.hpp"
#include "support/ffcv_files.hpp"
#include "support/litdata_files.hpp"
#include "support/megatron_files.hpp"
#include "support/raw_png.hpp"
#include "support/raw_tar.hpp"
#include "support/sound_files.hpp"
#include "support/tar_cases.hpp"
#include "support/zip_writer.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

namespace {

namespace ps = penstock;
using penstock_test::pax_record;
using penstock_test::raw_tar;

class folder {
 public:
  explicit folder(std::filesystem::path where) : where_(std::move(where)) {}
  void add(const std::string& target, const std::string& bytes) {
    std::filesystem::create_directories(where_ / target);
    std::ofstream out(where_ / target / std::to_string(numbers_[target]++), std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::filesystem::path where_;
  std::map<std::string, int> numbers_;
};

std::string little(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}
std::string big(std::uint64_t value, std::size_t bytes) {
  const std::string text = little(value, bytes);
  return {text.rbegin(), text.rend()};
}
std::string mode(unsigned how) { return little(how, 1); }
std::string two_files(const std::string& first, const std::string& second) {
  return little(first.size(), 2) + first + second;
}

std::string zstd_of(const std::string& text, int level, bool checksum, bool named) {
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, checksum ? 1 : 0);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_contentSizeFlag, named ? 1 : 0);
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress2(context.get(), packed.data(), packed.size(), text.data(), text.size()));
  return packed;
}
std::string gzip_of(const std::string& text, int level) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(level), libdeflate_free_compressor);
  std::string packed(libdeflate_gzip_compress_bound(compressor.get(), text.size()), '\0');
  packed.resize(
      libdeflate_gzip_compress(compressor.get(), text.data(), text.size(), packed.data(), packed.size()));
  return packed;
}
std::string lz4_of(const std::string& text, bool checksums, bool named, bool linked) {
  LZ4F_preferences_t wanted{};
  wanted.frameInfo.contentChecksumFlag = checksums ? LZ4F_contentChecksumEnabled : LZ4F_noContentChecksum;
  wanted.frameInfo.blockChecksumFlag = checksums ? LZ4F_blockChecksumEnabled : LZ4F_noBlockChecksum;
  wanted.frameInfo.contentSize = named ? text.size() : 0;
  wanted.frameInfo.blockMode = linked ? LZ4F_blockLinked : LZ4F_blockIndependent;
  std::string packed(LZ4F_compressFrameBound(text.size(), &wanted), '\0');
  packed.resize(LZ4F_compressFrame(packed.data(), packed.size(), text.data(), text.size(), &wanted));
  return packed;
}
std::string bzip2_of(const std::string& text) {
  std::string packed(text.size() * 2 + 1000, '\0');
  auto size = static_cast<unsigned>(packed.size());
  BZ2_bzBuffToBuffCompress(packed.data(), &size, const_cast<char*>(text.data()),
                           static_cast<unsigned>(text.size()), 1, 0, 0);
  packed.resize(size);
  return packed;
}
std::string xz_of(const std::string& text) {
  std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  (void)lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, nullptr,
                                reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                                reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size());
  packed.resize(size);
  return packed;
}
std::string skippable(const std::string& text) { return "\x5e\x2a\x4d\x18" + little(text.size(), 4) + text; }

void archives(folder& out) {
  std::vector<std::string> all;
  for (const auto& one : penstock_test::good_tar_cases()) all.push_back(one.bytes);
  for (const auto& one : penstock_test::bad_tar_cases()) all.push_back(one.bytes);
  for (const std::string& bytes : all) {
    if (bytes.size() > 16384) continue;
    for (const char* target : {"tar", "tar_agreement"})
      for (const unsigned how : {0u, 1u}) out.add(target, mode(how) + bytes);
    out.add("stream", bytes);
  }
  const std::string some =
      raw_tar().member("a.txt", "11").member("a.cls", "2").member("b.txt", "").end().bytes;
  for (const std::string& packed :
       {zstd_of(some, 3, true, true), zstd_of(some, 1, false, false), gzip_of(some, 6), bzip2_of(some),
        xz_of(some), lz4_of(some, true, true, false), lz4_of(some, false, false, true)}) {
    out.add("stream", packed);
    out.add("stream", packed + packed);
    out.add("stream", skippable("xyz") + packed);
    out.add("stream", packed.substr(0, packed.size() / 2));
  }
}

void indexes(folder& out) {
  const raw_tar archive =
      raw_tar().member("a.txt", "1").member("a.cls", "22").member("b.txt", "333").member("c.x", "").end();
  const auto files = ps::memory_files().add("a.tar", archive.bytes);
  auto session = files.connect();
  const ps::buffer index = ps::detail::build_index(session, 0, "a.tar");
  for (unsigned how = 0; how < 8; ++how)
    out.add("index_file", mode(how) + std::string(ps::text_of(index.view())));
  const std::string named = "v1.2 3\ntxt 512 1 a.txt cls 1536 2 a.cls\ntxt 2560 3 b.txt\nx 3584 0 c.x\n";
  const std::string plain = "v1.1 3\ntxt 512 1 cls 1536 2\ntxt 2560 3\nx 3584 0\n";
  const std::string offsets = little(0, 8) + little(2048, 8) + little(3072, 8) + little(3584, 8);
  for (const unsigned how : {0u, 1u}) {
    out.add("foreign_index", mode(how) + two_files(named, archive.bytes));
    out.add("foreign_index", mode(how) + two_files(plain, archive.bytes));
    out.add("foreign_index", mode(how | 2u) + two_files(offsets, archive.bytes));
  }
}

void packed_payloads(folder& out) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "word " + std::to_string(i * i % 37) + ' ';
  const std::string zeros(2 << 20, '\0');  // more than the limit
  for (const std::string& content :
       {std::string(), std::string("a"), text, std::string(70'000, 'x'), zeros}) {
    for (const bool checksum : {false, true}) {
      for (const bool named : {false, true}) {
        const std::string packed = zstd_of(content, 3, checksum, named);
        out.add("zstd", packed);
        out.add("zstd", packed + skippable("abc") + packed);
        const std::string frame = lz4_of(content, checksum, named, !checksum);
        if (frame.size() > 4096) continue;
        out.add("lz4", frame);
        out.add("lz4", frame + skippable("abc") + frame);
      }
    }
    for (const int level : {0, 1, 9}) {
      const std::string packed = gzip_of(content, level);
      if (packed.size() > 4096) continue;
      out.add("gzip", packed);
      out.add("gzip", packed + packed + std::string(3, '\0'));
    }
  }
  // all optional parts of a header
  out.add("gzip", std::string("\x1f\x8b\x08\x1c\0\0\0\0\0\3\2\0xxname\0comment\0", 28) +
                      gzip_of("abc", 6).substr(10));
}

template <class T>
std::string npy_file(const ps::extents& shape) {
  std::vector<T> values(static_cast<std::size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), T(1));
  const auto bytes = ps::npy_bytes<T>(shape, std::span<const T>(values));
  return std::string(ps::text_of(bytes));
}

void arrays(folder& out) {
  const auto add = [&](unsigned type, const std::string& file) {
    out.add("npy", mode(type) + two_files(file, file));
  };
  for (const ps::extents& shape : {ps::extents(), ps::extents(3), ps::extents(2, 3), ps::extents(4, 0)}) {
    add(0, npy_file<float>(shape));
    add(1, npy_file<std::uint8_t>(shape));
    add(3, npy_file<std::int64_t>(shape));
  }
  add(1, npy_file<std::uint8_t>(ps::extents(2, 3, 3)));
  add(1, npy_file<std::uint16_t>(ps::extents(2, 3)));
  for (const unsigned bits : {16u, 33u, 62u})
    add(1, npy_file<std::uint8_t>(ps::extents(std::uint64_t{1} << bits, 0)));
  for (const char* literal :
       {"{'descr': '>f4', 'fortran_order': True, 'shape': (2, 1L), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '|b1', 'fortran_order': False, 'shape': (0, 4611686018427387904)}",
        "{\"shape\": (4294967296, 4294967296), 'fortran_order': False, 'descr': '<i8'}"}) {
    const std::string text = literal;
    const std::string one = std::string("\x93NUMPY\1\0", 8) + little(text.size(), 2) + text + "12345678";
    const std::string two = std::string("\x93NUMPY\2\0", 8) + little(text.size(), 4) + text + "12345678";
    for (unsigned type = 0; type < 4; ++type) {
      add(type, one);
      add(type, two);
    }
  }
  const auto idx = [&](unsigned type, unsigned code, const std::vector<std::uint32_t>& lengths,
                       std::size_t bytes) {
    std::string file = std::string(2, '\0') + mode(code) + mode(static_cast<unsigned>(lengths.size()));
    for (const std::uint32_t length : lengths) file += big(length, 4);
    file += std::string(bytes, 'x');
    out.add("idx", mode(type) + file);
    out.add("idx_gz", gzip_of(file, 6));
    out.add("idx_gz", gzip_of(file.substr(0, 5), 1) + gzip_of(file.substr(5), 9));
  };
  idx(0, 0x08, {2, 3, 4}, 24);
  idx(0, 0x08, {7}, 7);
  idx(1, 0x0b, {2, 3}, 12);
  idx(2, 0x0e, {3, 1}, 24);
  idx(0, 0x08, {0, 0xffffffff, 0xffffffff, 0xffffffff}, 0);
  idx(0, 0x08, {0xffffffff, 0}, 0);
}

/// An archive of one member with its checksum, stored or compressed.
std::string npz_of(const std::string& name, const std::string& file, bool compressed) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(6), libdeflate_free_compressor);
  std::string packed = file;
  if (compressed) {
    packed.resize(libdeflate_deflate_compress_bound(compressor.get(), file.size()));
    packed.resize(libdeflate_deflate_compress(compressor.get(), file.data(), file.size(), packed.data(),
                                              packed.size()));
  }
  std::string all =
      penstock_test::zip_writer()
          .add({.name = name, .bytes = packed, .method = static_cast<std::uint16_t>(compressed ? 8 : 0)})
          .text();
  const std::size_t entry = all.rfind("PK\1\2");
  all.replace(entry + 16, 4, little(libdeflate_crc32(0, file.data(), file.size()), 4));
  all.replace(entry + 24, 4, little(file.size(), 4));
  return all;
}

void zips(folder& out) {
  const auto add = [&out](unsigned type, const std::string& name, const std::string& archive) {
    out.add("npz", mode(type) + little(name.size(), 1) + name + archive);
  };
  using penstock_test::zip_writer;
  const std::string array = npy_file<float>(ps::extents(2, 3)),
                    bytes = npy_file<std::uint8_t>(ps::extents(5));
  for (const bool compressed : {false, true})
    for (const std::string& name : {std::string(), std::string("a")}) {
      const std::string head = little(name.size(), 1) + name;
      out.add("npz_codec", mode(0) + head + npz_of("a.npy", array, compressed));
      out.add("npz_codec", mode(1) + head + npz_of("a", bytes, compressed));
    }
  zip_writer two;
  two.comment = "a comment";
  two.add("x.npy", array).add("y.npy", bytes);
  add(0, "x", two.text());
  add(1, "y.npy", two.text());
  add(1, "x", two.text());
  for (const bool wide_end : {false, true}) {
    zip_writer wide;
    wide.wide_end = wide_end;
    wide.add({.name = "x", .bytes = array, .wide = true, .extra = std::string("\x75\x70\2\0ab", 6)});
    add(0, "x", wide.text());
  }
  add(0, "x", zip_writer().add({.name = "x.npy", .bytes = array, .method = 8}).text());
  add(0, "", zip_writer().text());
}

void manifests(folder& out) {
  out.add("manifest", "penstock manifest 2 0\n");
  out.add("manifest", "penstock manifest 2 2\n10240 5 4096 77 78 1 8 0000.tar\n0 0 0 0 0 0 4 a\nb.\n");
  out.add("manifest", "penstock manifest 2 1\n18446744073709551615 4611686018427387904 1 2 3 0 0 \n");
}

void hash_lists(folder& out) {
  const std::string hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  const auto add = [&out](const std::string& name, const std::string& list) {
    out.add("sha256_list", mode(static_cast<unsigned>(name.size())) + name + list);
  };
  add("data/0.tar", hash + "  0.tar\n" + hash + " *train/1.tar\n");
  add("", "\\" + hash + "  a\\nb\\\\c\\r\n");
  add("https://host/a/0.tar?x=/1", hash + "  ./a/0.tar\r\n" + hash + "  0.tar\r\n");
  add("0.tar", hash + "  0.tar\n" + hash + "  ./0.tar\n");
  add("0.tar", hash + "  0.t");
}

void texts(folder& out) {
  for (const char* text :
       {R"({"a": 7, "b": [1, 2.5e3, null, true, {"a": "\u00e9\ud83d\ude00"}]})",
        R"({"a": "text\n", "c": {}})", R"({"a": [1, 2]})", R"([[[[]]]])", R"({"a": true})", "1e400",
        "{\"a\": -9223372036854775808, \"a\": 1}", R"({"b": NaN, "a": [-Infinity, 1], "c": "\ud83d"})",
        R"({"b": nul, "\u0061": "\udc00x"})"})
    out.add("json", text);
  for (const char* text : {"train-{0000..0127}.tar", "{a,b{1..2},}{x}", "{10..0..-5}", "\\{a\\,b\\}",
                           "{a..e..2}", "{{1..2},{a..b}}-{003..001}", "{0..9999999}{0..9999999}",
                           "{-9223372036854775808..9223372036854775807..9}"})
    out.add("braces", text);
  for (const std::string text :
       {"https://[2001:db8::1]:8443/a/b%20c.tar?sig=1&x=%2F", "http://host.example",
        "s3://Bucket_1/key?versionId=3", "http://user:secret@host/", "http://h:/p#f"})
    for (const char* location : {"", "/other?q", "../up/./x", "//host/p", "?only", "https://h:444/x#f"})
      out.add("url", static_cast<char>(text.size()) + text + location);
  for (const std::string head :
       {"GET /metrics?token=a%2Bb&x HTTP/1.1\r\nHost: localhost:1\r\nAuthorization: Bearer s\r\n",
        "HEAD http://h/ HTTP/1.0\r\nConnection: close\r\nContent-Length: 0\r\n",
        "POST / HTTP/1.1\r\nA: b\r\n", "GET / HTTP/2.0\r\n",
        "GET * HTTP/1.1\r\n folded\r\nTransfer-Encoding: x"})
    for (const char* const page :
         {"", "# HELP a b\n# TYPE a gauge\na 1\n", "# HELP a\n# TYPE\na{b=\"c\"} 1\n#\n"})
      out.add("http_request", std::string{static_cast<char>(head.size()), '\0'} + head + page + page);
  for (const char* text :
       {"42\n", " -7", "+3", "1e-3", "nan", "0x1p3", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xed\xa0\x80"})
    out.add("words", text);
  ps::state s;
  out.add("state", mode(0) + ps::to_string(s));
  s.step = 2;
  s.ordinal = 8;
  s.taken = 12;
  s.given = 3;
  s.held = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  s.plan = {"generated(50)", "shuffle(seed 3)", "a \"name\" \xc3\xa9"};
  for (unsigned plan = 0; plan < 4; ++plan) {
    out.add("state", mode(2 * plan) + ps::to_string(s));
    out.add("state", mode(2 * plan + 1) + std::string(100, '\3'));
  }
  const std::string bad =
      R"({"rank": 1, "epoch": 0, "index": 6, "source": 17, "key": "\u0007\ufffd", "file": "a.tar", )"
      R"("offset": 512, "stage": "decode", "code": "format", "reason": "r", "done": )";
  out.add("ledger", bad + "\"skipped\"}\n" + bad.substr(0, 50) + "\n" + bad +
                        R"("replaced", "substitute": {"index": 4, "source": 9, "key": "9", "file": "b\\"}})" +
                        "\n");
  out.add("lines", two_files("one\ntwo\r\n\nlast", "\r\n\n"));
  std::string many;
  for (int i = 0; i < 300; ++i) many += std::to_string(i) + '\n';
  out.add("lines", two_files(many, "x"));
}

void tokens(folder& out) {
  const std::string ten(20, '\1');
  out.add("tokens", mode(0) + two_files(ten, ten));
  std::string head = little(20240520, 4) + little(1, 4) + little(10, 4);
  head.resize(1024);
  out.add("tokens", mode(1) + two_files(head + ten, head + ten));
  std::string wide = little(20240801, 4) + little(7, 4) + little(5, 4);
  wide.resize(1024);
  out.add("tokens", mode(2) + two_files(wide + ten, wide + ten));
  // two documents, of sequences of 4 and 3, and of 3
  const std::string index = std::string("MMIDIDX\0\0", 9) + little(1, 8) + little(8, 1) + little(3, 8) +
                            little(3, 8) + little(4, 4) + little(3, 4) + little(3, 4) + little(0, 8) +
                            little(8, 8) + little(14, 8) + little(0, 8) + little(2, 8) + little(3, 8);
  for (const unsigned how : {3u, 4u, 5u, 12u}) out.add("tokens", mode(how) + two_files(index, ten));
}

void megatron_gpt(folder& out) {
  const auto of = [](std::string_view path) { return std::string(penstock_test::megatron_oracle(path)); };
  std::string files;
  for (const char* const name :
       {"made.idx", "cache-GPTDataset-train-document_index.npy", "cache-GPTDataset-train-sample_index.npy",
        "cache-GPTDataset-train-shuffle_index.npy"})
    files += little(of(name).size(), 2) + of(name);
  files += of("made.bin");
  // windows of 16 + 1 tokens, as the cache has, of 16 and of 1
  for (const unsigned how : {31u, 30u, 0u})
    for (const unsigned samples : {0u, 200u})
      out.add("megatron_gpt", mode(how) + mode(samples) + mode(2) + files);
}

void mds(folder& out) {
  const std::string columns =
      R"("column_encodings": ["ndarray", "int", "list[png]", "pil", "ndarray:float32:2"], )"
      R"("column_names": ["a", "i", "l", "p", "s"], "column_sizes": [null, 8, null, null, 8])";
  const std::string config = "{" + columns + "}";
  const std::string array = "\x08\x04\x02hi", list = std::string(4, '\0') + little(1, 4) + little(1, 4) + "x",
                    image = little(1, 4) + little(2, 4) + little(1, 4) + "Lab";
  const std::string sample = little(array.size(), 4) + little(list.size(), 4) + little(image.size(), 4) +
                             array + std::string(8, '\1') + list + image + std::string(8, '\2');
  const std::size_t begin = 16 + config.size();
  const std::string shard = little(2, 4) + little(begin, 4) + little(begin + sample.size(), 4) +
                            little(begin + 2 * sample.size(), 4) + config + sample + sample;
  const std::string index = R"({"version": 2, "shards": [{"format": "mds", "samples": 2, )" + columns +
                            R"(, "raw_data": {"basename": "s", "bytes": )" + std::to_string(shard.size()) +
                            "}}]}";
  out.add("mds", little(index.size(), 2) + index + shard);
}

void caches(folder& out) {
  for (char how = 0; how < 32; ++how)
    out.add("block_index", std::string(1, how) + std::string("\0\1\2\7\377\1", 6));
}

void litdata(folder& out) {
  const std::string leaf = R"({\"type\": null, \"context\": null, \"children_spec\": []})";
  const std::string tensor = std::string("\0\0\0\x0b\0\0\0\1\0\0\0\2hi", 14),
                    numpy = little(4, 4) + little(1, 4) + little(2, 4) + "hi";
  const std::string item = little(8, 4) + little(tensor.size(), 4) + little(numpy.size(), 4) + little(8, 4) +
                           std::string(8, '\1') + tensor + numpy + "8letters";
  const std::string chunk = little(2, 4) + little(16, 4) + little(16 + item.size(), 4) +
                            little(16 + 2 * item.size(), 4) + item + item;
  const std::string index =
      R"({"chunks": [{"chunk_bytes": )" + std::to_string(chunk.size()) +
      R"(, "chunk_size": 2, "filename": "c"}], "config": {"data_format": ["int", "tensor", "numpy", )"
      R"("no_header_numpy:9"], "data_spec": "[1, {\"type\": \"builtins.dict\", \"context\": )"
      R"(\"[\\\"a\\\", \\\"b\\\", \\\"c\\\", \\\"d\\\"]\", \"children_spec\": [)" +
      leaf + ", " + leaf + ", " + leaf + ", " + leaf + R"(]}]"}})";
  out.add("litdata", little(index.size(), 2) + index + chunk);
}

void ffcv(folder& out) {
  using writer = penstock_test::ffcv_writer;
  const writer all({{2, "image"},
                    {1, "label"},
                    {0, "weight"},
                    {3, "bytes"},
                    {4, "array", writer::array({2}, "<f4")},
                    {6, "tensor", writer::array({4}, "|u1")},
                    {5, "json"}});
  std::vector<writer::sample> samples;
  for (std::uint64_t i = 0; i < 3; ++i)
    samples.push_back({writer::image(i != 1, 1, 2, "abcdef"), writer::number(i), writer::real(0.5), "bytes",
                       "12345678", "1234", "{}"});
  out.add("ffcv", all.file(samples, true));
  out.add("ffcv", writer({{1, "label"}}).file({{writer::number(std::uint64_t{7})}}, true));
}

void arrow_ipc(folder& out) {
  for (const penstock_test::oracle_file& one : penstock_test::arrow_oracles)
    if (!one.path.ends_with(".expected")) out.add("arrow_ipc", std::string(one.bytes));
  for (const penstock_test::oracle_file& one : penstock_test::litdata_oracles) {
    if (one.path.starts_with("rows/chunk")) out.add("arrow_ipc", std::string(one.bytes));
    if (one.path.starts_with("frames/chunk")) out.add("litdata_frames", "\2\6" + std::string(one.bytes));
    if (one.path.starts_with("values/chunk")) out.add("litdata_samples", "\2\6" + std::string(one.bytes));
  }
}

void avro(folder& out) {
  using penstock_test::avro_number;
  using penstock_test::avro_text;
  const std::string entry =
      R"({"type":"record","name":"e","fields":[{"name":"status","field-id":0,"type":"int"},)"
      R"({"name":"a","field-id":1,"type":["null","string"]},{"name":"data_file","field-id":2,"type":)"
      R"({"type":"record","name":"r2","namespace":"x","fields":[{"name":"a","type":"boolean"},)"
      R"({"name":"b","type":["null",{"type":"fixed","name":"f","size":2}]},{"name":"list","type":)"
      R"({"type":"array","items":["null","double"]}},{"name":"map","type":{"type":"map","values":"bytes"}},)"
      R"({"name":"kind","type":{"type":"enum","name":"k","symbols":["A"]}}]}},)"
      R"({"name":"b","field-id":3,"type":["null","x.r2"]}]})";
  const std::string inner = "\1" + avro_number(1) + "ab" + avro_number(-1) + avro_number(1) + avro_number(0) +
                            avro_number(0) + avro_number(1) + avro_text("key") + avro_text("bytes") +
                            avro_number(0) + avro_number(0);
  const std::string one = avro_number(2) + avro_number(1) + avro_text("text") + inner + avro_number(0),
                    two = avro_number(-1) + avro_number(0) + inner + avro_number(1) + inner;
  const std::string blocks = penstock_test::avro_block(2, one + two) + penstock_test::avro_block(1, one);
  out.add("avro", mode(0) + penstock_test::avro_head(entry) + blocks);
  out.add("avro", mode(0) + penstock_test::avro_head(entry, "null", {{"partition-spec-id", "0"}}) + blocks);
  out.add("avro", mode(1) + penstock_test::avro_head(entry, "copied") + blocks);
  out.add("avro", mode(0) + penstock_test::avro_head(R"({"type":"record","name":"r","fields":[]})"));
}

void delta(folder& out) {
  const std::string array(
      "\xd1\xd3\x39\x64\1\0\0\0\0\0\0\0\0\0\0\0\x3a\x30\0\0\1\0\0\0\0\0\2\0\x10\0\0\0\3\0\5\0\x8\0", 38),
      run("\xd1\xd3\x39\x64\1\0\0\0\0\0\0\0\0\0\0\0\x3b\x30\0\0\1\0\0\5\0\1\0\2\0\5\0", 31);
  const std::string array_text = "^Bg9^0rr910000000000iXQKl0rr91000625c8Xg0@@G82MK&8",
                    run_text = "^Bg9^0rr910000000000j1{Tm0rr960096300Ju5";
  for (const std::string& one : {array, run}) out.add("delta", mode(1) + one);
  for (const std::string& one : {array_text, run_text, std::string("ab00000000000000000000")})
    out.add("delta", mode(2) + one);
  for (const char* const one : {"2024-02-29", "2024-02-29 23:59:59.123456", "1969-12-31T00:00:00Z",
                                "a%20b/c.parquet", "s3://b/k", "decimal(10,2)", "timestamp_ntz"})
    out.add("delta", mode(3) + one);

  const auto commits = [&](const std::string& beside, const std::string& text) {
    out.add("delta", mode(0) + little(beside.size(), 1) + beside + text);
  };
  const std::string protocol =
      R"({"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors",)"
      R"("columnMapping","timestampNtz","typeWidening"],"writerFeatures":[]}})"
      "\n";
  const auto metadata = [](const std::string& mapped) {
    return R"({"metaData":{"id":"x","format":{"provider":"parquet"},"schemaString":"{\"type\":\"struct\",)"
           R"(\"fields\":[{\"name\":\"i\",\"type\":\"long\",\"metadata\":{\"delta.columnMapping.id\":1,)"
           R"(\"delta.columnMapping.physicalName\":\"c1\"}},{\"name\":\"r\",\"type\":{\"type\":\"struct\",)"
           R"(\"fields\":[{\"name\":\"a\",\"type\":{\"type\":\"array\",\"elementType\":\"decimal(10,2)\"}},)"
           R"({\"name\":\"m\",\"type\":{\"type\":\"map\",\"keyType\":\"string\",\"valueType\":\"float\"},)"
           R"(\"metadata\":{\"delta.columnMapping.physicalName\":\"c4\"}}]},\"metadata\":)"
           R"({\"delta.columnMapping.id\":2}},{\"name\":\"day\",\"type\":\"date\",\"metadata\":)"
           R"({\"delta.columnMapping.id\":3}}]}","partitionColumns":["day"],"configuration":)"
           R"({"delta.columnMapping.mode":")" +
           mapped + "\"}}}\n";
  };
  const auto add = [](const std::string& path, const std::string& vector) {
    return R"({"add":{"path":")" + path +
           R"(","partitionValues":{"day":"2024-02-29"},"size":1,)"
           R"("modificationTime":1,"dataChange":true,"deletionVector":)" +
           vector + "}}\n";
  };
  const auto inside = [](const std::string& text, const std::string& size, const std::string& rows) {
    return R"({"storageType":"i","pathOrInlineDv":")" + text + R"(","sizeInBytes":)" + size +
           R"(,"cardinality":)" + rows + "}";
  };
  const std::string end(1, '\0');
  for (const char* const mapped : {"none", "name", "id"})
    commits("", protocol + metadata(mapped) + add("a%20b.parquet", "null") + end +
                    R"({"remove":{"path":"a%20b.parquet"}})"
                    "\n" +
                    add("a%20b.parquet", inside(array_text, "38", "3")) +
                    add("c", inside(run_text, "31", "6")));
  commits("", protocol + metadata("none") + add("a", inside(run_text, "31.0", "-6e99")));
  // The file of a vector has the size in front and the checksum behind.
  commits("\1" + std::string("\0\0\0\x26", 4) + array + "\x87\x93\xdd\xa3",
          protocol + metadata("none") +
              add("a",
                  R"({"storageType":"p","pathOrInlineDv":"v","offset":1,"sizeInBytes":38,"cardinality":3})"));
  commits("", R"({"commitInfo":{"timestamp":1}})"
              "\n" +
                  protocol + R"({"sidecar":{"path":"s.parquet"}})" + "\n" + metadata("none"));
}

void tf_records(folder& out) {
  const std::int64_t integers[] = {-1, 300};
  const float floats[] = {0.5f, -2.0f};
  std::string file;
  const auto add = [&](const std::string& example) {
    out.add("tf_example", example);
    file += little(example.size(), 8) + std::string(4, '\0') + example + std::string(4, '\0');
  };
  add(ps::tf_example_bytes({{"x", std::span<const std::int64_t>(integers)}, {"y", 7}}));
  add(ps::tf_example_bytes({{"x", std::span<const float>(floats)}}));
  add(ps::tf_example_bytes({{"y", 1}, {"x", "text"}}));
  out.add("tf_example", "\x0a\x0b\x0a\x09\x0a\x01x\x12\x04\x1a\x02\x08\x07");  // not packed
  for (const unsigned how : {1u, 2u}) out.add("tfrecord", mode(how) + file);
  // A gzip member and a zlib stream of nothing, and of one stored byte.
  out.add("tfrecord", mode(1) + std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0", 20));
  out.add("tfrecord", mode(1) + std::string("\x78\x9c\x03\0\0\0\0\x01", 8));
}

void encrypted_objects(folder& out) {
  struct tink_object {
    std::size_t segment_size;
    std::string_view associated;
    std::size_t size;
    std::string_view bytes;
  };
  constexpr tink_object all[] = {
#include "storage/oracles/tink.inc"
  };
  for (const tink_object& one : all)
    if (one.segment_size < 1000)
      out.add("decrypting", mode(1) + little(one.segment_size - 57, 2) + std::string(one.bytes));
  for (const unsigned changes : {0u, 1u, 3u})
    for (const std::size_t size : {0u, 1u, 200u})
      out.add("decrypting", mode(2) + little(71, 2) + mode(changes) +
                                std::string(std::size_t{3} * changes, '\x40') + little(16, 2) +
                                std::string(size, 'p'));
}

void tensors(folder& out) {
  const auto add = [&out](unsigned type, const std::string& header, std::size_t bytes) {
    out.add("safetensors", mode(type) + little(header.size(), 8) + header + std::string(bytes, '\1'));
  };
  const std::string x = R"("x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})";
  add(0, "{" + x + "}  ", 24);
  add(2, "{" + x + R"(,"y":{"dtype":"U16","shape":[4],"data_offsets":[24,32]},"__metadata__":{"a":"b"}})",
      32);
  add(1,
      R"({"b":{"dtype":"BOOL","shape":[3,1],"data_offsets":[0,3]},)"
      R"("s":{"dtype":"I8","shape":[],"data_offsets":[3,4]}})",
      4);
  add(0, "{}", 0);
  add(0, R"({"a":{"dtype":"F64","shape":[0,5],"data_offsets":[0,0]}})", 0);
}

void metadata(folder& out) {
  const auto add = [&out](const std::string& info, const std::string& split) {
    out.add("energon", two_files(info, split));
  };
  const std::string info = R"({"energon_version": "7", "shard_counts": {"a-0.tar": 1, "a-1.tar": 2}})";
  add(info, "split_parts:\n  train:\n  - a-{0..1}.tar\n  val: []\nexclude: []\n");
  add(info, R"({"split_parts": {"train": ["a-0.tar"]}, "exclude": ["a-1.tar", "a-0.tar/key"]})");
  add("shard_counts:\n  'a-0.tar': 1\n", "split_parts: {train: [a-0.tar, &x b, *x]}\n---\n...\n");
}

void descriptions(folder& out) {
  const std::string head = R"({"__kind__": "wids-shard-index-v1", "wids_version": 1, )";
  const std::string here = R"("shardlist": [{"url": "s-0.tar", "nsamples": 2, "filesize": 3072}])";
  const std::string there = R"("base": "d", "shardlist": [{"url": "file:s-1.tar", "nsamples": 1}])";
  out.add("wids", two_files(head + here + "}", ""));
  out.add("wids", two_files(head + there + "}", ""));
  out.add("wids", two_files(head + R"("datasets": [{"source_url": "other.json"}, {)" + here + "}]}",
                            head + there + "}"));
  out.add("wids",
          two_files(head + R"("datasets": [{"source_url": "shardindex.json\u0000"}], "x": [[[]]]})", "[]"));
}

void utterances(folder& out) {
  out.add("audio_manifest",
          mode(0) + R"({"audio_filepath": "a.wav", "offset": 1.5, "duration": 2, "text": "\u00e9", "x": [1]})"
                    "\n\n");
  out.add("audio_manifest", mode(1) + two_files("r1 a.wav\nr2 b.wav\n",
                                                two_files("u1 r1 0.5 1.5\nu2 r2 0 -1 1\n", "u1 x y\nu2\n")));
  const std::string cut =
      R"({"id": "a", "type": "MonoCut", "start": 0, "duration": 1, "channel": 1, "supervisions": )"
      R"([{"text": "b", "custom": {"x": 5}}], "recording": {"channel_ids": [0, 1]}})";
  out.add(
      "audio_manifest",
      mode(2) +
          two_files(cut, penstock_test::raw_tar().member("a.wav", "c").member("a.json", "{}").end().bytes));
}

void values(folder& out) {
  const auto add = [&out](unsigned how, unsigned kind, const std::string& rest, std::uint64_t samples,
                          std::uint64_t name, std::uint64_t texts, std::uint64_t text_bytes) {
    std::string bytes = "PENSTVAL" + little(1, 4) + little(128, 4) + little(kind, 8) + little(77, 8) +
                        little(samples, 8) + little(name, 8) + little(texts, 8) + little(text_bytes, 8);
    bytes += little(ps::detail::checksum(ps::bytes_of(rest)), 8) + std::string(48, '\0');
    bytes += little(ps::detail::checksum(ps::bytes_of(bytes)), 8);
    out.add("derived_index", mode(how) + bytes + rest);
  };
  const std::string three = little(1, 8) + little(0, 8) + little(1, 8);
  add(0, 1, three + "label", 3, 5, 0, 0);
  add(4, 2, three + "label", 3, 5, 0, 0);
  add(1, 3, little(0x3fe0000000000000u, 8) + little(0x7ff8000000000000u, 8) + "w", 2, 1, 0, 0);
  add(3, 4, three + little(3, 8) + little(6, 8) + "catdog" + "kind", 3, 4, 2, 6);
  add(7, 4, "x", 0, 1, 0, 0);
  out.add("derived_index", mode(0) + "PENSTVAL");
}

/// [how] [format] [a part, 16 bytes] file
void more_images(folder& out) {
  const ps::image_size size{29, 21};
  std::vector<std::uint16_t> values(std::size_t{4} * size.width * size.height);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint16_t>(i * 6553 / (1 + i % 3));
  std::vector<std::uint8_t> bytes(values.begin(), values.end());
  const std::string part = little(3, 4) + little(5, 4) + little(16, 4) + little(9, 4);
  const auto add = [&](const char* target, unsigned how, unsigned format, ps::bytes_view file) {
    out.add(target, mode(how) + mode(format) + part + std::string(ps::text_of(file)));
  };
  ps::png_encoder png;
  ps::webp_encoder webp;
  for (unsigned format = 0; format < 6; ++format)
    for (const unsigned how : {0u, 1u, 4u}) {
      const ps::png_options turned{.shown = static_cast<ps::orientation>(1 + format)};
      add("png", how, format, png.encode(ps::pixel_view<std::uint8_t, 1>(bytes.data(), size)));
      add("png", how, format, png.encode(ps::pixel_view<std::uint8_t, 3>(bytes.data(), size), turned));
      add("png", how, format, png.encode(ps::pixel_view<std::uint16_t, 4>(values.data(), size), turned));
      penstock_test::raw_png raw;
      raw.width = size.width;
      raw.height = size.height;
      raw.depth = 2;
      raw.colour = 3;
      raw.interlaced = true;
      raw.before = raw.chunk("PLTE", "abcdefghijkl") + raw.chunk("tRNS", "abc");
      add("png", how, format,
          ps::bytes_of(raw.of_samples(std::vector<unsigned>(size.width * size.height, 2))));
      for (const bool lossless : {false, true}) {
        const ps::webp_options options{.quality = 50, .lossless = lossless};
        add("webp", how, format, webp.encode(ps::pixel_view<std::uint8_t, 3>(bytes.data(), size), options));
        add("webp", how, format, webp.encode(ps::pixel_view<std::uint8_t, 4>(bytes.data(), size), options));
      }
    }
}

/// [how] [format] [a part, 16 bytes] file, of the small files in tests/data/image_files
void image_files(folder& out, const std::filesystem::path& data) {
  constexpr std::pair<std::string_view, const char*> targets[] = {
      {".gif", "gif"}, {".avif", "avif"}, {".tif", "tiff"}, {".png", "png"}, {".webp", "webp"}};
  const std::string part = little(1, 4) + little(2, 4) + little(3, 4) + little(2, 4);
  for (const auto& one : std::filesystem::directory_iterator(data / "image_files"))
    for (const auto& [ending, target] : targets) {
      if (one.path().extension() != ending || one.file_size() > 4000) continue;
      std::ifstream in(one.path(), std::ios::binary);
      const std::string file{std::istreambuf_iterator<char>(in), {}};
      for (unsigned how = 0; how < 4; ++how) out.add(target, mode(how) + mode(how + 1) + part + file);
    }
}

/// [how] [the first frame] [frames] file
void sounds(folder& out) {
  for (const penstock_test::sound_kind& kind : penstock_test::sound_kinds())
    for (const unsigned channels : {1u, 2u}) {
      const std::vector<std::byte> file = penstock_test::sound_file(
          kind.format, penstock_test::tones(600, kind.rate, channels), kind.rate, channels);
      out.add("audio", mode(channels) + little(200, 4) + little(90, 2) + std::string(ps::text_of(file)));
    }
}

/// [how] file, and [how][three frames] file, of the films in tests/data/film_files
void films(folder& out, const std::filesystem::path& data) {
  for (const auto& one : std::filesystem::directory_iterator(data / "film_files")) {
    std::ifstream in(one.path(), std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(in), {}};
    for (unsigned how = 0; how < 2; ++how) out.add("video_index", mode(how) + file);
    out.add("video", mode(0) + little(5, 2) + little(0, 2) + little(3, 2) + file);
    out.add("sound_track", mode(1) + file);
  }
}

/// [kind] [size of a text] text, and the files of a tokenizer; see bpe.fuzz.cpp.
void tokenizers(folder& out, const std::filesystem::path& data) {
  const std::string text =
      "a dog's 12 b <s>a\xc3\xa9"
      "e\xcc\x81\xcc\xa3 \xe1\x84\x92\xe1\x85\xa1\n ";
  const auto add = [&](unsigned kind, const std::string& file) {
    out.add("bpe", mode(kind) + mode(static_cast<unsigned>(text.size())) + text + file);
  };
  for (const char* name : {"deepseek.tokenizer", "roberta.tokenizer", "llama.tokenizer", "digits.tokenizer",
                           "qwen.tokenizer", "steps.tokenizer", "gpt.tiktoken"}) {
    std::ifstream in(data / "tokenizers" / name, std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(in), {}};
    add(file.starts_with('{') ? 0 : 1, file);
  }
  const std::string head =
      R"({"added_tokens":[{"id":9,"content":"<s>","lstrip":true,"rstrip":true,"special":true}],)"
      R"("pre_tokenizer":)";
  const std::string tail =
      R"(,"post_processor":{"type":"Sequence","processors":[{"type":"TemplateProcessing","single":)"
      R"([{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"ids":[9]}}},)"
      R"({"type":"RobertaProcessing","cls":["a",0],"sep":["b",1]}]},"model":{"type":"BPE",)"
      R"("ignore_merges":true,"vocab":{"a":0,"b":1,"\u0120":2,"\u0120a":3,"ab":4},)"
      R"("merges":["\u0120 a",["a","b"]]}})";
  add(0, head + R"({"type":"ByteLevel","add_prefix_space":true})" + tail);
  for (const char* const form : {"NFC", "NFD", "NFKC", "NFKD"})
    add(0, head + R"({"type":"ByteLevel","add_prefix_space":true},"normalizer":{"type":"Sequence",)" +
               R"("normalizers":[{"type":"Prepend","prepend":"ab"},{"type":"Replace","pattern":)" +
               R"({"String":"a"},"content":"ba"},{"type":")" + form + "\"}]}" + tail);
  add(0, head +
             R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)"
             R"("\\s+(?!\\S)|[^\\s]|$|^"},"behavior":"Removed","invert":true},)"
             R"({"type":"Split","pattern":{"String":"a"},"behavior":"Isolated"},)"
             R"({"type":"Digits","individual_digits":false},)"
             R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":false}]})" +
             tail);
  add(1, "YQ== 0\nYg== 1\nYWI= 2\nYWJh 3\n");
  const std::string vocabulary = R"({"a":0,"b":1,"ab":2})";
  add(2, mode(0) + mode(static_cast<unsigned>(vocabulary.size())) + vocabulary + "#version: 0.2\na b\n");
}

/// Each operation, two in a row, and none, on a file of each format; see image_of.fuzz.cpp.
void operations(folder& out) {
  const ps::image_size size{45, 37};
  std::vector<std::uint8_t> values(std::size_t{3} * size.width * size.height);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint8_t>(i * 7 % 251 / (1 + i % 3));
  const ps::pixel_view<std::uint8_t, 3> rgb(values.data(), size);
  ps::jpeg_encoder jpeg;
  ps::png_encoder png;
  ps::webp_encoder webp;
  const std::string files[] = {
      std::string(ps::text_of(jpeg.encode(rgb))),
      std::string(ps::text_of(png.encode(rgb, {.shown = ps::orientation::rotated_90}))),
      std::string(ps::text_of(webp.encode(rgb)))};
  const std::string part = little(1, 4) + little(2, 4) + little(8, 4) + little(5, 4);
  for (const std::string& file : files) {
    out.add("image_of", mode(0) + part + file);
    for (unsigned which = 0; which < 14; ++which) {
      const std::string one = mode(which) + std::string("\x0b\x12\x04\x07");
      const std::string two = mode((which + 5) % 14) + std::string("\x08\x0e\x02\x03");
      out.add("image_of", mode(131) + one + part + file);  // one operation, of an image that may be scaled
      out.add("image_of", mode(2) + one + two + part + file);
    }
  }
}

/// [how] [x] [y] [width] [height] file
void images(folder& out) {
  ps::jpeg_encoder encoder;
  const ps::image_size size{45, 37};
  std::vector<std::uint8_t> values(std::size_t{3} * size.width * size.height);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint8_t>(i * 7 % 251 / (1 + i % 3));
  const ps::pixel_view<std::uint8_t, 3> rgb(values.data(), size);
  const ps::pixel_view<std::uint8_t, 1> gray(values.data(), size);
  const std::string exif(
      "\xff\xe1\0\x22"
      "Exif\0\0MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0",
      36);
  const auto add = [&out](unsigned how, ps::bytes_view file) {
    out.add("jpeg", mode(how) + std::string("\x40\x30\x80\x90") + std::string(ps::text_of(file)));
  };
  for (const bool progressive : {false, true}) {
    for (const auto chroma :
         {ps::jpeg_chroma::full_444, ps::jpeg_chroma::half_422, ps::jpeg_chroma::quarter_420}) {
      const std::string file(
          ps::text_of(encoder.encode(rgb, {.quality = 60, .chroma = chroma, .progressive = progressive})));
      for (unsigned how = 0; how < 3; ++how) add(how, ps::bytes_of(file));
      add(6, ps::bytes_of(file.substr(0, 2) + exif + file.substr(2)));
      add(10, ps::bytes_of(file.substr(0, file.size() * 3 / 4)));
    }
    add(2, encoder.encode(gray, {.progressive = progressive}));
  }
}

/// What object stores, and services of credentials, answer; and the files of their tools.
void stores(folder& out) {
  const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  const std::string object =
      "<Contents><Key>a/one+two%2B.tar</Key><LastModified>2026-11-23T12:00:00.000Z</LastModified>"
      "<ETag>&quot;e-7&quot;</ETag><Size>434234</Size><StorageClass>STANDARD</StorageClass></Contents>";
  for (const char* const more :
       {"", "<EncodingType>url</EncodingType>",
        "<IsTruncated>true</IsTruncated><NextContinuationToken>1ue+/=</NextContinuationToken>"})
    out.add("s3_xml",
            mode(0) + head + "<ListBucketResult xmlns=\"x\"><Name>b</Name>" + more + object +
                "<CommonPrefixes><Prefix>a/<![CDATA[<b>]]>/</Prefix></CommonPrefixes></ListBucketResult>");
  out.add(
      "s3_xml",
      mode(1) + head +
          "<InitiateMultipartUploadResult><UploadId>VXBs&amp;</UploadId></InitiateMultipartUploadResult>");
  out.add("s3_xml",
          mode(2) + " \n" + head +
              "<CompleteMultipartUploadResult><ETag>&#34;e-2&#x22;</ETag></CompleteMultipartUploadResult>");
  for (const char* const code : {"SlowDown", "NoSuchKey", "PermanentRedirect", "RequestTimeTooSkewed"})
    for (const unsigned status : {50u, 75u, 100u, 125u})
      out.add(
          "s3_xml",
          mode(status) + head + "<Error><Code>" + code +
              "</Code><Message>m</Message><Region>eu-west-1</Region><RequestId>4442587FB7D0A2F9</RequestId>"
              "</Error>");
  out.add("s3_xml", mode(101) + "<ErrorResponse><Error><Code>ExpiredToken</Code></Error></ErrorResponse>");
  out.add("aws_profiles",
          "# all\n[default]\nregion = r ; here\naws_access_key_id=a==\n\n[profile \"two words\"]\r\nservices "
          "= here\r\n"
          "[services here]\ns3 =\n  endpoint_url = http://h\n  x = y\n[default]\nrole_arn = a\n  and more\n");
  out.add(
      "credential_answer",
      mode(0) +
          "<AssumeRoleResponse xmlns=\"x\"><AssumeRoleResult><Credentials><AccessKeyId>i</AccessKeyId>"
          "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2026-11-23T13:00:00Z"
          "</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>");
  out.add("credential_answer",
          mode(1) + R"({"Code": "Success", "AccessKeyId": "i", "SecretAccessKey": "s", "Token": "t",)"
                    R"( "Expiration": "2026-11-23T18:00:00.5+01:00"})");
}

/// [what was asked for] [bytes that arrive together] answers
void answers(folder& out) {
  const std::string range = "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Range: bytes ";
  for (const char* const together : {"\xff", "\x06"}) {
    out.add("web_answer", mode(2) + together + range + "0-0/100\r\nContent-Length: 1\r\n\r\nx" + range +
                              "0-0/*\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\nt: u\r\n\r\n");
    out.add("web_answer", mode(4 * 2 + 3 + 32) + together + range + "10-19/100\r\n\r\n0123456789");
    out.add("web_answer", mode(2) + together + range + "0-0/1\r\nContent-Encoding: gzip\r\n\r\nx");
    out.add("web_answer", mode(2) + together + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    out.add(
        "web_answer",
        mode(1) + together +
            "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 503 Busy\r\nRetry-After: 7\r\n"
            "Content-Length: 4\r\n\r\nbusyHTTP/1.1 429 Too Many\r\nRetry-After: Fri, 31 Dec 2027 23:59:59 "
            "GMT\r\nConnection: close\r\n\r\nlater");
    out.add("web_answer",
            mode(1) + together + "HTTP/1.0 302 Found\r\nLocation: /b?c\r\nX-Folded: a\r\n b\r\n\r\nrest");
    out.add("web_answer", mode(0) + together +
                              "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 416 No\r\nContent-Range: "
                              "bytes */100\r\nContent-Length: 0\r\n\r\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: seeds <folder> <folder of tests/data>\n");
    return 2;
  }
  std::filesystem::remove_all(argv[1]);
  folder out(argv[1]);
  archives(out);
  indexes(out);
  packed_payloads(out);
  arrays(out);
  zips(out);
  manifests(out);
  hash_lists(out);
  texts(out);
  tokens(out);
  megatron_gpt(out);
  mds(out);
  litdata(out);
  arrow_ipc(out);
  avro(out);
  delta(out);
  ffcv(out);
  tf_records(out);
  encrypted_objects(out);
  tensors(out);
  metadata(out);
  descriptions(out);
  utterances(out);
  values(out);
  images(out);
  operations(out);
  more_images(out);
  image_files(out, argv[2]);
  sounds(out);
  films(out, argv[2]);
  tokenizers(out, argv[2]);
  stores(out);
  answers(out);
  caches(out);
  return 0;
}
