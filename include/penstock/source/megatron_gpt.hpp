// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/megatron_gpt_options.hpp>
#include <penstock/source/record_files.hpp>
#include <penstock/source/rows/megatron_samples.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/storage/mapped_file.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// The samples of a GPTDataset, for `record_files`.
template <class T, class Window>
struct megatron_gpt_layout {
  static constexpr std::string_view source_name = "megatron_gpt";

  struct files : megatron_samples {
    files(const megatron_gpt_layout& chosen, storage_facts where, session_view session)
        : megatron_samples(chosen.window.length, chosen.window.targets, chosen.options) {
      if (chosen.window.stride != 0 || chosen.window.within_documents)
        throw error(errc::argument,
                    "megatron_gpt: samples follow one another and cross documents, as in Megatron; leave out "
                    "stride and within_documents");
      read(where, session, token_type::of<T>());
    }
  };
  template <class Session>
  using opened = token_rows<Window, files, megatron_rows<files, T, token_shape<Window>, Session>>;

  Window window;
  megatron_gpt_options options;
};

/// The files of a dataset, and those of the cache.
[[nodiscard]] inline mapped_file megatron_gpt_files(std::string_view prefix, const std::string& cache) {
  const std::string name = megatron_prefix(prefix);
  std::vector<std::string> names{name + ".bin", name + ".idx"};
  if (!cache.empty())
    for (const char* const which : {"document", "sample", "shuffle"})
      names.push_back(text({cache, "-", which, "_index.npy"}));
  return mapped_file(std::move(names));
}

}  // namespace detail

/// The source that `megatron_gpt` makes.
template <token_value T, class Window, storage Storage>
class megatron_gpt_source : public record_files<detail::megatron_gpt_layout<T, Window>, Storage,
                                                megatron_gpt_source<T, Window, Storage>> {
  static_assert(detail::is_token_window<Window>,
                "penstock: tokens need token_window<1024>{} or token_windows{.length = 1024}");

 public:
  megatron_gpt_source(Storage where, Window window, megatron_gpt_options options)
      : megatron_gpt_source::record_files({window, std::move(options)}, std::move(where)) {}

  /// The number of tokens in the file.
  [[nodiscard]] std::uint64_t tokens() const noexcept { return this->known().tokens; }
  /// How often the order goes through the documents; 1 if it comes from a cache.
  [[nodiscard]] std::uint64_t epochs() const noexcept { return this->known().order.epochs; }
};

/// The samples of Megatron's `GPTDataset`, number for number and token for token, so that a run that began in
/// Megatron goes on here: sample k is `dataset[k]` there.
///
///     auto train = megatron_gpt<std::uint16_t>(
///         "openwebtext_text_document", token_window<1024>{},
///         {.samples = 10'000 * 64, .seed = 1234, .split = "969,30,1", .part = megatron_part::train});
///     auto rest = train | skip(2'500 * 64) | shard(0, 8) | batch(8);  // after 2,500 steps of 8 ranks
///
/// In: the prefix of a pair of `PREFIX.bin` and `PREFIX.idx`, or a storage that names both files and those of
/// the cache; windows of Megatron's `sequence_length`, with `targets` 1 for `add_extra_token_to_sequence`,
/// which is its default, or 0; what Megatron was told, see `megatron_gpt_options`. With `.cache` the order is
/// read from the three files that Megatron has written beside the dataset or in `--data-cache-path`, and
/// is compared with the documents.
/// Out: an array expression of `length + targets` tokens. A sample is made of pieces of one document or of
/// several, which are in random order, and each is written into its slot. Labels are the tokens shifted by
/// one. With `with_document_ids{token_window<1024>{}}` there are the numbers of pieces beside the tokens.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. All epochs that Megatron went
/// through are one epoch here, and it needs no `shuffle`. Followed by `shard(rank, n) | batch(b)`, a rank
/// gets the micro-batches of Megatron's `MegatronPretrainingSampler` (`--dataloader-type single`) of n
/// data-parallel ranks.
/// Keeps: 8 bytes for each document, 4 for each of an epoch, and 12 for each sample; Megatron maps the last
/// two from its cache. Cost per sample: one copy or one read for each piece; no allocation. Making the plan
/// costs two shuffles.
/// For blends of several datasets see `megatron_blend`. Not there: the last sample of a validation set that
/// Megatron fills up where `drop_last_partial_validation_sequence` is false.
/// Threads: any number at once.
/// Throws `errc::argument` for a split that is none, a part without documents, another window, or files that
/// the storage does not name; `errc::format`, with file and offset, as `megatron_tokens` does, and for a
/// cache that is not of these files and this sequence length; `errc::io`, also for a file that was changed
/// after the plan was made.
/// Source: Megatron-LM, megatron/core/datasets/gpt_dataset.py and helpers.cpp, of megatron-core 0.16.1.
template <token_value T, storage Storage, class Window>
[[nodiscard]] megatron_gpt_source<T, Window, Storage> megatron_gpt(Storage where, Window window,
                                                                   megatron_gpt_options options = {}) {
  return {std::move(where), window, std::move(options)};
}
template <token_value T, class Window>
[[nodiscard]] megatron_gpt_source<T, Window, mapped_file> megatron_gpt(std::string_view prefix, Window window,
                                                                       megatron_gpt_options options = {}) {
  mapped_file where = detail::megatron_gpt_files(prefix, options.cache);
  return megatron_gpt<T>(std::move(where), window, std::move(options));
}

}  // namespace penstock::inline v0_1
