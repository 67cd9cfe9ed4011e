// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/rows/megatron_samples.hpp>

#include <penstock/base/numpy_random_state.hpp>
#include <penstock/codec/layouts/npy_header.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/files/hash_bytes.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

namespace penstock::inline v0_1::detail {

// Numbers of samples and of places are held in 32 bits; Megatron goes on with 64.
inline constexpr std::uint64_t most_in_megatron_order = 0xfffffffe;

[[noreturn, gnu::cold]] PENSTOCK_INLINE void refuse_megatron(std::initializer_list<piece> why) {
  throw error(errc::argument, text({"megatron_gpt: ", text(why)}));
}

// The sequences [begin, end) of a part. Source: megatron/core/datasets/blended_megatron_dataset_config.py
// (parse_and_normalize_split) and blended_megatron_dataset_builder.py.
PENSTOCK_INLINE std::pair<std::uint64_t, std::uint64_t> megatron_range(const megatron_gpt_options& options,
                                                                       std::uint64_t sequences) {
  const std::string& split = options.split;
  if (split.empty()) return {0, sequences};
  std::array<double, 3> shares{};
  std::size_t count = 0;
  constexpr std::string_view digits = ".0123456789";
  for (std::size_t at = split.find_first_of(digits); at != std::string::npos;) {
    const std::size_t end = std::min(split.find_first_not_of(digits, at), split.size());
    double share = 0;
    const auto [stop, failure] = std::from_chars(split.data() + at, split.data() + end, share);
    if (failure != std::errc{} || stop != split.data() + end || count == shares.size())
      refuse_megatron({"the split '", split, "' is not up to three numbers, as in \"969,30,1\""});
    shares[count++] = share;
    at = split.find_first_of(digits, end);
  }
  const double sum = shares[0] + shares[1] + shares[2];
  if (!(sum > 0) || !std::isfinite(sum)) refuse_megatron({"the split '", split, "' has no parts"});
  const auto part = static_cast<std::size_t>(options.part);
  double before = 0;
  for (std::size_t i = 0; i < part; ++i) before += shares[i] / sum;
  const auto bound = [&](double share) {
    // as Python rounds: a half to the even number
    return std::min(sequences,
                    static_cast<std::uint64_t>(std::nearbyint(share * static_cast<double>(sequences))));
  };
  return {bound(before), bound(before + shares[part] / sum)};
}

// Where samples begin in an order of sequences, every `length` tokens of it. The last tokens, which are less
// than a sample, are in none. Source: megatron/core/datasets/helpers.cpp (build_sample_idx).
PENSTOCK_INLINE std::vector<megatron_start> megatron_starts(const std::vector<std::uint64_t>& firsts,
                                                            const std::vector<std::uint32_t>& order,
                                                            std::uint64_t tokens, std::uint64_t length,
                                                            bool extra) {
  const std::uint64_t samples = tokens < (extra ? 1 : 0) ? 0 : (tokens - (extra ? 1 : 0)) / length;
  if (samples > most_in_megatron_order)
    refuse_megatron({samples, " samples are too many; up to 2^32 - 2 can be ordered"});
  std::vector<megatron_start> starts(to_size(samples) + 1);
  megatron_start at;
  for (std::uint64_t i = 1; i <= samples; ++i) {
    // the sample's last token is the first one of the next sample, if there is an extra token
    std::uint64_t left = length + (extra ? 1 : 0);
    for (;;) {
      const std::size_t sequence = order[at.place];
      const std::uint64_t there = firsts[sequence + 1] - firsts[sequence] - at.offset;
      if (there >= left) break;
      left -= there;
      at = {at.place + 1, 0};
    }
    at.offset += static_cast<std::uint32_t>(left - (extra ? 1 : 0));
    starts[to_size(i)] = at;
  }
  return starts;
}

PENSTOCK_INLINE std::uint64_t tokens_of(const std::vector<std::uint64_t>& firsts,
                                        const std::vector<std::uint32_t>& order) noexcept {
  std::uint64_t tokens = 0;
  for (const std::size_t sequence : order) tokens += firsts[sequence + 1] - firsts[sequence];
  return tokens;
}

PENSTOCK_INLINE megatron_order make_megatron_order(const std::vector<std::uint64_t>& firsts,
                                                   std::uint64_t begin, std::uint64_t end,
                                                   std::uint64_t length, bool extra,
                                                   const megatron_gpt_options& options) {
  const std::uint64_t each = end - begin, more = extra ? 1 : 0;
  // of an epoch
  const std::uint64_t tokens = begin < end ? firsts[to_size(end)] - firsts[to_size(begin)] : 0;
  if (tokens == 0)
    refuse_megatron({"no tokens are in documents ", begin, " to ", end, " of ", firsts.size() - 1,
                     options.split.empty() ? "" : ", the part of this split"});
  if (options.samples > most_in_megatron_order)
    refuse_megatron({options.samples, " samples are too many; up to 2^32 - 2 can be ordered"});
  megatron_order made;
  if (options.samples != 0)
    made.epochs = std::max<std::uint64_t>(1, (options.samples * length + more + tokens - 1) / tokens);
  if (made.epochs > most_in_megatron_order / each)
    refuse_megatron({made.epochs, " epochs of ", each, " documents are too many places to order"});
  // the last epoch is shuffled by itself where less than four fifths of it are needed
  std::uint64_t whole = made.epochs, before = 0;
  if (made.epochs > 1) {
    before = ((made.epochs - 1) * tokens - more) / length;
    const double most = 0.80 * static_cast<double>((tokens - more) / length);
    if (options.samples - before < static_cast<std::uint64_t>(most)) whole = made.epochs - 1;
  }
  numpy_random_state draw(static_cast<std::uint32_t>(options.seed));
  made.sequences.resize(to_size(made.epochs * each));
  for (std::uint64_t i = 0; i < made.sequences.size(); ++i)
    made.sequences[to_size(i)] = static_cast<std::uint32_t>(begin + i % each);
  const auto last = made.sequences.begin() + static_cast<std::ptrdiff_t>(whole * each);
  draw.shuffle(made.sequences.begin(), whole * each);
  if (whole != made.epochs) draw.shuffle(last, each);
  made.starts = megatron_starts(firsts, made.sequences, made.epochs * tokens, length, extra);
  made.samples.resize(made.starts.size() - 1);
  std::iota(made.samples.begin(), made.samples.end(), 0u);
  if (whole == made.epochs) before = made.samples.size();
  draw.shuffle(made.samples.begin(), before);
  if (before != made.samples.size())
    draw.shuffle(made.samples.begin() + static_cast<std::ptrdiff_t>(before), made.samples.size() - before);
  return made;
}

PENSTOCK_INLINE megatron_samples::megatron_samples(std::uint64_t wanted, std::uint64_t targets,
                                                   megatron_gpt_options chosen)
    : options(std::move(chosen)), row{wanted + targets}, length(wanted) {
  if (targets > 1)
    refuse_megatron(
        {"samples have one extra token or none, and windows of ", targets, " targets were asked for"});
  if (length == 0 || length >= 0x7fffffff)
    refuse_megatron({"a sequence length of ", length, " is not in [1, 2^31 - 2]"});
  if (options.seed > 0xffffffff)
    refuse_megatron({"seed ", options.seed, " is not in [0, 2^32), where numpy takes it from"});
}

// The object of this name.
PENSTOCK_INLINE object_id megatron_object(storage_facts where, const std::string& name) {
  const auto found = std::find(where.names.begin(), where.names.end(), name);
  if (found == where.names.end())
    throw error(errc::argument, "megatron_gpt: the storage does not name this file").in_file(name);
  return static_cast<object_id>(found - where.names.begin());
}

// A whole npy file of integers of 4 or 8 bytes.
class megatron_numbers {
 public:
  megatron_numbers(session_view session, object_id object)
      : bytes_(session.range(object, 0, session.size(object))), header_(read_npy_header(bytes_)) {
    wide_ = header_.item_size == 8;
    header_ = whole_npy(bytes_, header_.kind == 'u' && !wide_ ? 'u' : 'i', wide_ ? 8 : 4);
    if (header_.order == '>')
      refuse_tokens({"the numbers are big-endian, as Megatron does not write them"}, 8);
  }
  [[nodiscard]] const extents& shape() const noexcept { return header_.shape; }
  /// A negative number is one that no index has.
  [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const noexcept {
    const std::byte* const at = bytes_.view().data() + header_.data_offset;
    return wide_ ? load_little<std::uint64_t>(at + to_size(8 * i))
                 : load_little<std::uint32_t>(at + to_size(4 * i));
  }
  [[nodiscard]] std::uint64_t offset(std::uint64_t i) const noexcept {
    return header_.data_offset + i * header_.item_size;
  }
  void need_shape(const extents& wanted) const {
    if (!(shape() == wanted))
      refuse_tokens({"the array has shape ", to_string(shape()), ", and ", to_string(wanted),
                     " follows from the documents and the sequence length; the cache is of another sequence "
                     "length, or of other files"},
                    8);
  }

 private:
  object_bytes bytes_;
  npy_header header_;
  bool wide_ = false;
};

PENSTOCK_INLINE void megatron_samples::read_cache(storage_facts where, session_view session) {
  const auto look = [&](const char* which, auto&& use) {
    const std::string name = text({options.cache, "-", which, "_index.npy"});
    const object_id object = megatron_object(where, name);
    reading_object(session, object, name, [&] { use(megatron_numbers(session, object)); });
  };
  const std::uint64_t all = firsts.size() - 1;
  look("document", [&](const megatron_numbers& found) {
    if (found.shape().rank() != 1 || found.shape()[0] > most_in_megatron_order)
      refuse_tokens({"the array has shape ", to_string(found.shape()), " and not that of a document index"},
                    8);
    order.sequences.resize(to_size(found.shape()[0]));
    for (std::size_t i = 0; i < order.sequences.size(); ++i) {
      if (found[i] >= all)
        refuse_tokens({"there is no document ", found[i], ", only ", all, "; the cache is of other files"},
                      found.offset(i));
      order.sequences[i] = static_cast<std::uint32_t>(found[i]);
    }
  });
  order.starts = megatron_starts(firsts, order.sequences, tokens_of(firsts, order.sequences), length,
                                 row.elements() != length);
  look("sample", [&](const megatron_numbers& found) {
    found.need_shape(extents(order.starts.size(), 2));
    for (std::size_t i = 0; i < order.starts.size(); ++i)
      if (const megatron_start want = order.starts[i];
          found[2 * i] != want.place || found[2 * i + 1] != want.offset)
        refuse_tokens({"sample ", i, " begins at (", found[2 * i], ", ", found[2 * i + 1], "), and (",
                       want.place, ", ", want.offset,
                       ") follows from the documents and the sequence length; the cache is of "
                       "another sequence length, or of other files"},
                      found.offset(2 * i));
  });
  look("shuffle", [&](const megatron_numbers& found) {
    found.need_shape(extents(order.starts.size() - 1));
    order.samples.resize(order.starts.size() - 1);
    std::vector<bool> taken(order.samples.size());
    for (std::size_t i = 0; i < order.samples.size(); ++i) {
      if (found[i] >= taken.size() || taken[to_size(found[i])])
        refuse_tokens({"sample ", found[i], " of ", taken.size(),
                       found[i] < taken.size() ? " comes twice" : " is none"},
                      found.offset(i));
      taken[to_size(found[i])] = true;
      order.samples[i] = static_cast<std::uint32_t>(found[i]);
    }
  });
}

PENSTOCK_INLINE void megatron_samples::read(storage_facts where, session_view session, token_type type) {
  const std::string* bin = nullptr;
  for (const std::string& name : where.names)
    if (name.ends_with(".bin")) {
      if (bin != nullptr)
        refuse_megatron(
            {"there are '", *bin, "' and '", name,
             "', and one dataset is read; for several, write concat(a, b) | megatron_blend({...})"});
      bin = &name;
    }
  if (bin == nullptr) refuse_megatron({"the storage names no .bin"});
  const object_id object = megatron_object(where, *bin);
  const std::string index_name = megatron_prefix(*bin) + ".idx";
  const object_id index_object = megatron_object(where, index_name);
  width = type.width;
  row_bytes = row.elements() * width;
  std::uint64_t mark = 0;
  reading_object(session, index_object, index_name, [&] {
    const object_bytes bytes = session.range(index_object, 0, session.size(index_object));
    const megatron_index index(bytes);
    firsts.reserve(to_size(index.sequences()) + 1);
    tokens = index.read(
        type, [](std::uint64_t, std::uint64_t) {},
        [&](std::uint64_t first, std::uint64_t) { firsts.push_back(first); });
    firsts.push_back(tokens);
    mark = index.hash();
  });
  if (firsts.size() - 1 > 0x7fffffff)
    refuse_megatron({firsts.size() - 1, " documents are more than Megatron can number"});
  reading_object(session, object, *bin, [&] {
    const object_version version = session.version(object);
    if (tokens * width != version.size)
      refuse_tokens({"the index says ", tokens, " tokens, which are ", tokens * width,
                     " bytes, but the file has ", version.size, "; copy both again"},
                    std::min(tokens * width, version.size));
    versions = {version};
  });
  objects = {object};
  if (options.cache.empty()) {
    const auto [begin, end] = megatron_range(options, firsts.size() - 1);
    order = make_megatron_order(firsts, begin, end, length, row.elements() != length, options);
  } else {
    read_cache(where, session);
  }
  if (order.samples.empty())
    refuse_megatron({"the ", tokens_of(firsts, order.sequences),
                     " tokens of these documents are less than the ", row.elements(), " of a sample"});
  const std::uint64_t hash = hash_of_file(session, object, versions[0].size);
  learn_ends(object, hash);
  std::uint64_t content = penstock::fingerprint{}.add(hash, mark, length, order.samples.size()).value();
  for (const std::vector<std::uint32_t>* one : {&order.sequences, &order.samples})
    for (const std::uint32_t number : *one) content = mix64(content ^ number);
  shards =
      manifest({{*bin, versions[0].size, order.samples.size(), order.samples.size() * row_bytes, content}});
}

PENSTOCK_INLINE std::string megatron_samples::describe() const {
  std::string what =
      text({"megatron_gpt(", shards.shards()[0].name, "): ", order.samples.size(), " samples of ", length,
            " + ", row.elements() - length, " tokens, of ", order.sequences.size(), " documents"});
  if (!options.cache.empty()) return text({what, ", as in ", options.cache});
  append(what, {" in ", order.epochs, order.epochs == 1 ? " epoch" : " epochs", ", seed ", options.seed});
  constexpr std::string_view parts[] = {"train", "valid", "test"};
  if (!options.split.empty())
    append(what, {", ", parts[static_cast<std::size_t>(options.part)], " of ", options.split});
  return what;
}

}  // namespace penstock::inline v0_1::detail
