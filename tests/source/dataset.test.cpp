// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/dataset.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/dataset_files.hpp"
#include "support/test_data.hpp"

#include <penstock/codec/identity.hpp>
#include <penstock/codec/integer.hpp>
#include <penstock/codec/raw_number.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace ps = penstock;
using namespace penstock_test;

namespace dataset_test {

/// A format of one of the tests' own: all there is.
struct anything_format {
  static constexpr std::string_view name = "anything";
  using sources = std::variant<ps::webdataset<ps::file>, ps::line_source<ps::mapped_file>>;
  [[nodiscard]] static ps::format_fit look(const ps::dataset_listing&) { return ps::format_fit::description; }
  [[nodiscard]] static sources open(const ps::dataset_listing& there) {
    return ps::lines(there.files().front().paths.front());
  }
};

// Each source once, in the order of the formats.
static_assert(std::same_as<ps::dataset_of<ps::lines_format, anything_format, ps::webdataset_format<>>,
                           std::variant<ps::line_source<ps::mapped_file>, ps::webdataset<ps::file>>>);
static_assert(std::same_as<ps::dataset_of<>, ps::dataset_of<ps::core_formats>>);

template <class Sources>
std::string name_of(const Sources& sources) {
  return std::visit([](const auto& one) { return std::string(one.source_name); }, sources);
}
template <class Sources>
std::uint64_t samples_in(const Sources& sources) {
  return std::visit([](const auto& one) { return one.size(); }, sources);
}

}  // namespace dataset_test

using namespace dataset_test;

TEST_CASE("source/dataset: each format of the core library from bytes, whatever the file is called") {
  const dataset_folder folder;
  const auto found = [&](std::string_view name, std::string_view bytes) {
    const auto sources = ps::dataset(folder.write(name, bytes));
    CHECK(ps::format_of(ps::dataset_listing(folder(name))) == name_of(sources));
    return name_of(sources) + " " + std::to_string(samples_in(sources));
  };
  CHECK(found("a", shard_bytes(3)) == "webdataset 3");
  CHECK(found("b", arrow_oracle("stream.arrow")).starts_with("arrow_ipc "));
  CHECK(found("c", ffcv_bytes()) == "ffcv 3");
  CHECK(found("d", npy_text<double>(ps::extents(5, 2))) == "npy_rows 5");
  CHECK(found("e", zip_writer().add("x.npy", npy_text<float>(ps::extents(6))).text()) == "npz_rows 6");
  CHECK(found("f", idx_bytes({3, 2}, 6)) == "idx 3");
  CHECK(found("g", llmc_bytes(2051)) == "tokens 2");
  CHECK(found("h", "a\nb\n") == "lines 2");
  folder.write("images/cat/1.jpg", jpeg_beginning);
  CHECK(name_of(ps::dataset(folder("images"))) == "directory");
}

TEST_CASE("source/dataset: one lambda is a pipeline for every format") {
  const dataset_folder folder;
  folder.write("train-0.tar", shard_bytes(40));
  folder.write("train-1.tar", shard_bytes(24));
  const auto sum = [](const auto& sources) {
    return std::visit(
        []<class Source>(const Source& source) -> std::int64_t {
          std::int64_t total = 0;
          if constexpr (ps::open_sample<typename Source::element>) {
            const auto loader = source | ps::shuffle(ps::seed(7)) |
                                ps::decode<ps::field<"cls", ps::integer>> | ps::batch(8) | ps::workers(2);
            for (auto&& batch : loader.epoch(0))
              for (const auto one : ps::get<"cls">(batch)) total += static_cast<std::int64_t>(one);
          }
          return total;
        },
        sources);
  };
  const std::int64_t all = 40 * 39 / 2 + 24 * 23 / 2;
  CHECK(sum(ps::dataset(folder())) == all);
  CHECK(sum(ps::dataset(folder("train-{0..1}.tar"))) == all);
  CHECK(sum(ps::dataset(folder(), ps::webdataset_format{})) == all);
  CHECK(sum(ps::dataset(folder(), ps::ffcv_format{}, ps::light_tuple<ps::webdataset_format<>>{})) == all);
}

TEST_CASE("source/dataset: as in docs/formats.md") {
  using namespace ps;
  const dataset_folder folder;
  const std::string path = folder.write("numbers.beton", ffcv_bytes());
  std::size_t rows = 0;
  const auto use = [&](const auto& batch) { rows += batch.size(); };
  // clang-format off
const auto sources = dataset(path, webdataset_format{}, ffcv_format{});
std::visit([&](const auto& source) {
  for (auto&& batch : source | decode<field<"label", raw_number<std::int64_t>>> | batch(8)) use(batch);
}, sources);
  // clang-format on
  CHECK(rows == 3);
}

TEST_CASE("source/dataset: a description wins, options of the last format of a name count") {
  const dataset_folder folder;
  folder.write("a.txt", "a\nb\nc\n");
  CHECK(ps::format_of(ps::dataset_listing(folder()), ps::core_formats{}, anything_format{}) == "anything");
  CHECK(samples_in(ps::dataset(folder(), ps::core_formats{}, anything_format{})) == 3);
  folder.write("x/t.npz", zip_writer()
                              .add("a.npy", npy_text<float>(ps::extents(4)))
                              .add("b.npy", npy_text<float>(ps::extents(5)))
                              .text());
  CHECK_THAT(error_of([&] { static_cast<void>(ps::dataset(folder("x"))); }), contains("name one"));
  CHECK(samples_in(ps::dataset(folder("x"), ps::core_formats{}, ps::npz_rows_format<>{.array = "b"})) == 5);
}

TEST_CASE("source/dataset: what is no dataset, or two") {
  const dataset_folder folder;
  const auto said = [](const std::string& path) {
    return error_of([&] { static_cast<void>(ps::dataset(path)); });
  };
  CHECK_THAT(said(folder()), contains("no dataset is recognised here; found nothing; looked for webdataset, "
                                      "arrow_ipc, ffcv, npy_rows, npz_rows, idx, tokens, directory, lines"));
  folder.write("a.tar", shard_bytes(1));
  folder.write("b.npy", npy_text<float>(ps::extents(2)));
  CHECK_THAT(said(folder()),
             contains("this can be read as webdataset and as npy_rows; found 1 file 'a.tar'"));
  CHECK_THAT(said(folder()), contains("choose, as in dataset(path, webdataset_format{})"));
  CHECK(samples_in(ps::dataset(folder(), ps::webdataset_format{})) == 1);
  CHECK(samples_in(ps::dataset(folder("*.npy"))) == 2);
  CHECK_THAT(said(folder("nowhere")), contains("check the path"));
  CHECK_THAT(said("s3://bucket/a.tar"), contains("write dataset(s3(url))"));
  folder.write("noise.bin", std::string(5000, '\x81'));
  CHECK_THAT(said(folder("noise.bin")), contains("raw_tokens"));
}

TEST_CASE("source/dataset: in a storage") {
  const auto tar = ps::memory_files().add("a", shard_bytes(3)).add("b", shard_bytes(2));
  const auto sources = ps::dataset(tar);
  CHECK(name_of(sources) == "webdataset");
  CHECK(samples_in(sources) == 5);
  static_assert(
      std::same_as<std::remove_const_t<decltype(ps::dataset(tar, ps::webdataset_format{}, ps::idx_format{}))>,
                   std::variant<ps::webdataset<ps::memory_files>>>);
  CHECK(name_of(ps::dataset(ps::memory_files().add("x", npy_text<float>(ps::extents(3))))) == "npy_rows");
  CHECK(name_of(ps::dataset(ps::memory_files().add("x", ffcv_bytes()))) == "ffcv");
  CHECK(name_of(ps::dataset(ps::memory_files().add("x", arrow_oracle("file.arrow")))) == "arrow_ipc");
  CHECK(name_of(ps::dataset(ps::memory_files().add("x", "[1]\n[2]\n"))) == "lines");
  CHECK(samples_in(ps::dataset(
            ps::memory_files().add("x.bin", std::string(18, '\1')).add("x.idx", megatron_index(9, 8)),
            ps::tokens_format<>{.window = {.length = 4}})) == 2);
  // Formats that need paths, and storages that show nothing in place, are not looked for.
  CHECK_THAT(error_of([] { static_cast<void>(ps::dataset(ps::memory_files().add("x", idx_bytes({3}, 3)))); }),
             contains("no dataset is recognised here; found 1 file 'x'"));
  const dataset_folder folder;
  const ps::file text(folder.write("x", "[1]\n[2]\n"));
  CHECK_THAT(error_of([&] { static_cast<void>(ps::dataset(text)); }),
             contains("no dataset is recognised here"));
  const auto mixed = ps::memory_files().add("a.tar", shard_bytes(3)).add("b.txt", "text");
  CHECK_THAT(error_of([&] { static_cast<void>(ps::dataset(mixed)); }), contains("1 file 'b.txt'"));
}

TEST_CASE("source/dataset: real files") {
  const auto data = test_data("tar");
  if (!data) {
    WARN("no real files: set PENSTOCK_TEST_DATA");
    return;
  }
  const ps::webdataset_format<> tar{.options = {.index = ps::index_policy::transient}};
  const auto found = [&](const char* name) {
    const auto path = (data->parent_path() / name).string();
    const auto sources = ps::dataset(path, ps::core_formats{}, tar);
    return name_of(sources) + " " + std::to_string(samples_in(sources));
  };
  CHECK(found("tar/webdataset/tendata.tar") == "webdataset 100");
  CHECK(found("arrow/integration/cpp-21.0.0/generated_primitive.arrow_file") == "arrow_ipc 37");
  CHECK(found("npy/dali/2.npy") == "npy_rows 68");
  CHECK(found("npy/dali/237-134500-0003.npy").starts_with("npy_rows "));
  CHECK(found("tokens/megatron/meg-gpt2-openwebtext_text_document") == "tokens 1329");
  CHECK(found("tokens/jsonl") == "lines 20");
  CHECK(found("tokens/text/input.txt") == "lines 40000");
  CHECK(found("photos") == "directory 400");
}
