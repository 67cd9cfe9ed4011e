// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/shape_class.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/source/megatron_documents.hpp>
#include <penstock/source/rows/token_parts.hpp>
#include <penstock/stage/batch.hpp>

namespace penstock::inline v0_1 {

/// The options of `tokenised`.
struct tokenised_options {
  /// Whether files that are damaged, or from another state of the dataset, are made again; otherwise they are
  /// an error.
  bool rebuild = true;
  /// A part is on the disk, and is not made again, when it has so many tokens (a document counts as one
  /// more).
  std::uint64_t part_tokens = std::uint64_t{1} << 24;
};

namespace detail {

/// The values of a plan's samples that are documents: those of a field, or of samples without names.
template <class Element, class... Names>
struct document_values : std::type_identity<Element> {};
template <class Element, class Name>
  requires(has_field<Element, Name>)
struct document_values<Element, Name>
    : std::type_identity<
          std::remove_cvref_t<std::tuple_element_t<Element::template index_of<Name>, Element>>> {};

template <class V>
consteval bool are_tokens() {
  if constexpr (shape_class_of<V> == shape_class::none)
    return false;
  else
    return std::integral<typename stored<V>::type> && !std::same_as<typename stored<V>::type, bool> &&
           !std::same_as<typename stored<V>::type, char> && (value_rank<V> == 1 || value_rank<V> == -1);
}

/// The bytes of a document in a file of `T`. `document` says which it is, for errors.
template <token_value T, class U>
[[nodiscard]] bytes_view packed_tokens(std::span<const U> tokens, buffer& scratch, const auto& document) {
  if (tokens.size() > 0x7fffffffu)
    throw document(
        error(errc::limit, {"the document has ", tokens.size(),
                            " tokens, and Megatron's index has room for 2,147,483,647; split it"}));
  scratch.resize_for_overwrite(tokens.size() * sizeof(T));
  std::byte* to = scratch.data();
  for (const U token : tokens) {
    if (!std::in_range<T>(token)) [[unlikely]]
      throw document(error(
          errc::limit, {"token ", token, " does not fit the type that was asked for, whose ", "largest is ",
                        std::numeric_limits<T>::max(), "; write tokenised<std::int32_t>(...)"}));
    store_little(to, static_cast<std::make_unsigned_t<T>>(token));
    to += sizeof(T);
  }
  return scratch.view();
}

/// Tokenises the samples that are in no part yet. Where one is bad, those before it are kept.
template <token_value T, fixed_string... Field, class Plan, class Reader>
void tokenise_rest(const Plan& plan, const Reader& reader, token_parts& parts) {
  constexpr std::size_t together = 32;  // samples of a batch: few enough for books
  buffer scratch;
  const auto here = [&](error e) {
    const position at{0, parts.documents()};
    e.in_stage("tokenised").add_context(at);
    if constexpr (has_keys<Reader>) e.for_key(key_of(reader, at));
    return e;
  };
  try {
    for (auto&& b : (plan | skip(parts.documents()) | batch(together, ragged)).epoch(0)) {
      const auto take = [&](const auto& documents) {
        for (const auto document : documents)
          parts.add(packed_tokens<T>(
              std::span<
                  const std::remove_cv_t<typename std::remove_cvref_t<decltype(document)>::element_type>>(
                  document),
              scratch, here));
      };
      if constexpr (sizeof...(Field) == 0)
        take(b.values());
      else
        (take(get<Field>(b)), ...);
    }
  } catch (...) {
    try {
      parts.finish();
    } catch (const error&) {  // the first error says more
    }
    throw;
  }
  parts.finish();
}

/// What is there: the lengths of all documents, if they are complete and of this dataset.
[[nodiscard]] inline found_index find_documents(const wanted_index& lengths, const documents_wanted& wanted,
                                                const derive_options& options) {
  refuse_foreign_documents(wanted.prefix);
  found_index found = find_index(lengths, options);
  if (!found.file) return found;
  const documents_fault fault = check_documents(wanted, *found.file);
  if (fault == documents_fault::none) return found;
  if (fault == documents_fault::damaged && !options.rebuild)
    throw error(errc::format,
                "the index does not have the documents that tokenised has written; delete it, or leave out "
                ".rebuild = false")
        .in_file(wanted.prefix + ".idx");
  return {nullptr, fault == documents_fault::damaged ? derived_from::damage : derived_from::none};
}

}  // namespace detail

/// Tokenises a dataset once, in parallel, into a pair of files in Megatron's format, one document per sample:
/// `tokenised<T>(plan, name, prefix)` writes `PREFIX.bin` and `PREFIX.idx` and opens them as
/// `megatron_documents<T>`. Megatron, `megatron_tokens` and others read them, too.
///
///     auto tokenizer = bpe::from_file("tokenizer.json");
///     auto docs = tokenised<std::uint16_t>(lines("corpus.txt") | decode<bpe>(tokenizer) | workers(8), "gpt2",
///                                          "tokens/corpus");
///     auto loader = docs | shuffle(seed(7)) | pack(docs.lengths(), 4096, {.overlong = overlong::split}) | batch(8);
///
/// In: a plan of an indexed source with stages that work on single samples (`fields`, `decode`, `map`) and
/// annotations, whose samples are sequences of whole numbers; of records the field that is named,
/// `tokenised<T, "txt">(...)`. `T` is the type in the files: `std::uint16_t` for vocabularies of up to 65,536
/// tokens, `std::int32_t` for others. Out: the documents in the order of the source. The files' bytes are
/// identical for any number of workers, and those that `IndexedDatasetBuilder` of megatron-core 0.16.1
/// writes.
/// Nothing is put behind a document: an end-of-text token is the plan's, by a `map`.
///
/// If the files exist with this name and for this state of the dataset (its fingerprint), they are only
/// opened. `tokenised` cannot see the tokenizer: the name stands for it and for all stages, so give another
/// tokenizer another name. Files that are damaged or from another state of the dataset are made again; with
/// `.rebuild = false` that is an error. What it knows of them is in `PREFIX.penstock-values`, which is the
/// length of each document: `open_derived<std::uint64_t>` opens it for a plan of the texts.
/// A process may be killed at any moment. Each part of the tokens is written under a temporary name, flushed
/// to disk and renamed to `PREFIX.penstock-part-N`, and the next call goes on behind the last one; so it does
/// after a sample that was bad. When all are there they are joined, and the index, which makes the dataset
/// complete, appears last; then the parts are removed. If several processes need the files, one makes them
/// and the others wait (`flock` on `PREFIX.bin.lock`, which is removed afterwards).
/// Cost: one parallel pass over the dataset. The disk needs room for the tokens twice while they are joined;
/// memory, 24 bytes for each sample and one part. Opening the files reads the index and the lengths.
/// Throws what the chain throws, with the sample's key; `errc::limit`, with the key, for a token that does
/// not fit T and for a document of more than 2^31 - 1 tokens; `errc::io` if a file cannot be written;
/// `errc::argument` for files of that name that it has not made, which it leaves alone, for another name or
/// type, and for a dataset without samples.
/// Source: Megatron-LM, tools/preprocess_data.py and megatron/core/datasets/indexed_dataset.py.
template <token_value T, fixed_string... Field, class Source, class... Stages>
[[nodiscard]] megatron_document_source<T, mapped_file> tokenised(const plan<Source, Stages...>& p,
                                                                 std::string_view name,
                                                                 const std::string& prefix,
                                                                 const tokenised_options& options = {}) {
  using element = std::remove_cvref_t<typename plan<Source, Stages...>::element>;
  static_assert(sizeof...(Field) <= 1, "penstock: tokenised writes one field; call it once for each");
  static_assert(!std::same_as<T, std::uint32_t>,
                "penstock: Megatron's files have no tokens of std::uint32_t; write "
                "tokenised<std::int32_t>(...)");
  static_assert(indexed_source<Source>,
                "penstock: tokenised numbers the samples of a source with an index, but this one can only be "
                "read forward");
  static_assert(
      !renumbering_source<Source>,
      "penstock: tokenised numbers the samples of a source, but those of mix, or of joined sources with "
      "orders, are numbered differently in each epoch; tokenise each source");
  static_assert((detail::derivable_stage<Stages> && ...),
                "penstock: tokenised needs the samples as the source has them; leave out orders, filters, "
                "batch and everything after it, and put them behind what it returns");
  constexpr bool has_tokens =
      detail::are_tokens<typename detail::document_values<element, name_of<Field>...>::type>();
  static_assert(has_tokens,
                "penstock: tokenised writes sequences of whole numbers; decode<bpe>(tokenizer) makes them of "
                "text, and of records name the field: tokenised<T, \"txt\">(...)");
  if (name.empty())
    throw error(errc::argument, "the tokens must have a name, such as that of the tokenizer")
        .in_stage("tokenised");
  if (p.source().size() == 0) throw error(errc::argument, "the dataset has no samples").in_stage("tokenised");

  const std::string start = detail::megatron_prefix(prefix), bin = start + ".bin", idx = start + ".idx";
  const detail::documents_wanted wanted{start, p.source().fingerprint(), name, detail::token_type::of<T>()};
  const detail::wanted_index lengths{start + ".penstock-values", name, detail::value_kind::natural,
                                     wanted.dataset, p.source().size()};
  const derive_options chosen{options.rebuild};
  if (!detail::find_documents(lengths, wanted, chosen).file || detail::has_token_parts(start)) {
    const detail::making_lock lock(bin);
    detail::remove_leftovers(idx);
    detail::remove_leftovers(lengths.path);
    if (!detail::find_documents(lengths, wanted, chosen).file) {
      const auto reader = connect_source(p.source(), projection::none());
      detail::token_parts parts(wanted, options.part_tokens);
      if constexpr (has_tokens)  // one error is enough
        if (parts.documents() != lengths.samples) detail::tokenise_rest<T, Field...>(p, reader, parts);
      detail::write_documents(wanted, lengths.path, parts);
    }
    detail::remove_token_parts(start);
  }
  return megatron_documents<T>(mapped_file(std::vector<std::string>{bin, idx}));
}
/// Tokenises a source alone.
template <token_value T, fixed_string... Field, indexed_source Source>
[[nodiscard]] auto tokenised(const Source& source, std::string_view name, const std::string& prefix,
                             const tokenised_options& options = {}) {
  return tokenised<T, Field...>(plan<Source>(source), name, prefix, options);
}

}  // namespace penstock::inline v0_1
