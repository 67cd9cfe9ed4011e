// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/text/utterances.hpp>

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void utterance_list::close(std::string_view source) {
  if (all.empty())
    throw error(errc::argument, {"there are no utterances in ", name, "; ", source, " needs at least one"});
  if (!(max_overshoot >= 0 && max_overshoot <= 1e6))
    throw error(errc::argument, {"the .max_overshoot of ", source, " is ", number_text(max_overshoot),
                                 ", and must be seconds, 0 or more"});
  penstock::fingerprint mark;
  mark.add(source, all.size(), std::bit_cast<std::uint64_t>(max_overshoot), fingerprint);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const utterance& one = all[i];
    seconds += one.duration;
    mark.add(std::bit_cast<std::uint64_t>(one.offset), std::bit_cast<std::uint64_t>(one.duration), one.file,
             one.channel, texts[i]);
    if (!keys.empty()) mark.add(keys[i]);
    if (!stretches.empty()) mark.add(stretches[i].begin, stretches[i].size);
    for (const text_list& other : others) mark.add(other[i]);
  }
  fingerprint = mark.value();
}

PENSTOCK_INLINE std::string utterance_list::key(std::size_t i) const {
  if (!keys.empty()) return std::string(keys[i]);
  return text({tables[all[i].table], ":", all[i].line});
}

PENSTOCK_INLINE std::string utterance_list::describe(std::string_view source) const {
  return text({source, "(", name, "): ", size(), " utterances of ", number_text(std::round(seconds)),
               " s in ", files.size(), " files"});
}

PENSTOCK_INLINE std::size_t utterance_list::checked(std::uint64_t index) const {
  if (index >= size())
    throw error(errc::argument, {"there is no sample ", index, ": the dataset has ", size()});
  return to_size(index);
}

PENSTOCK_INLINE std::uint64_t utterance_list::milliseconds(std::size_t i) const {
  const double known = all[i].duration;
  if (known == 0)
    throw error(errc::missing,
                "it is not known how long this utterance is; write utt2dur, with "
                "utils/data/get_utt2dur.sh for one, or derive lengths from the sounds")
        .in_file(tables[all[i].table])
        .for_key(key(i));
  // a whole number of milliseconds stays what it is, although its double may be a little larger
  return static_cast<std::uint64_t>(std::max(std::ceil(known * 1000 - 1e-6), 1.0));
}

PENSTOCK_INLINE bytes_view mapped_sounds::show(const std::string& path, std::uint32_t number) {
  place& one = places_[number % places];
  if (!one.kept || one.number != number) {
    one.kept.reset();
    const files::descriptor opened(files::open_quietly(path));
    if (opened.get() < 0) throw files::failure("open the sound", path, errno);
    one.kept.emplace(opened.get(), files::version_of(opened.get(), path), path, true);
    one.number = number;
  }
  shown_ = &one;
  path_ = &path;
  one.kept->check_lost(path);
  return {one.kept->data(), to_size(one.kept->size())};
}

PENSTOCK_INLINE bytes_view utterance_blob::finish() const {
  const std::uint32_t number = list_->all[i_].file;
  const std::string& path = list_->files[number];
  const bytes_view whole = sounds_->show(path, number);
  if (list_->stretches.empty()) return whole;
  const file_stretch& at = list_->stretches[i_];
  files::check_range(at.begin, at.size, whole.size(), path);
  return whole.subspan(to_size(at.begin), to_size(at.size));
}

PENSTOCK_INLINE void utterance_blob::read_into(mutable_bytes into) const {
  const bytes_view bytes = finish();
  if (into.size() != bytes.size())
    throw error(errc::argument,
                {"a sound of ", bytes.size(), " bytes cannot be read into a buffer of size ", into.size()});
  if (!into.empty()) std::memcpy(into.data(), bytes.data(), into.size());
}

PENSTOCK_INLINE void read_utterance_ahead(const utterance_list& list, std::uint64_t index) noexcept {
  if (index >= list.size()) return;
  const auto i = to_size(index);
  if (list.stretches.empty() && list.all[i].offset != 0) return;  // where it is, is not known
  const files::descriptor opened(files::open_quietly(list.files[list.all[i].file]));
  if (opened.get() < 0) return;  // the read itself will report the error
  constexpr std::int64_t at_most = 1 << 20;
  const file_stretch at = list.stretches.empty() ? file_stretch{0, at_most} : list.stretches[i];
  ::posix_fadvise(opened.get(), static_cast<off_t>(at.begin), static_cast<off_t>(at.size),
                  POSIX_FADV_WILLNEED);
}

}  // namespace penstock::inline v0_1::detail
