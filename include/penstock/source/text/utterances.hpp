// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/sound_segment.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/storage/local/mapping.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// Texts one behind the other.
class text_list {
 public:
  void add(std::string_view one) {
    all_ += one;
    ends_.push_back(all_.size());
  }
  [[nodiscard]] bool empty() const noexcept { return ends_.size() == 1; }
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    return std::string_view(all_).substr(to_size(ends_[i]), to_size(ends_[i + 1] - ends_[i]));
  }

 private:
  std::string all_;
  std::vector<std::uint64_t> ends_{0};
};

/// What a manifest says of a segment of a sound.
struct utterance {
  double offset = 0;          // in seconds
  double duration = 0;        // in seconds; 0: up to the end, which is not known
  std::uint32_t file = 0;     // of those of the list
  std::uint32_t table = 0;    // the manifest
  std::uint32_t line = 0;     // of the manifest, counted from 1
  std::int32_t channel = -1;  // see `sound_segment`
};

/// The utterances of a dataset, as part of a plan.
struct utterance_list {
  std::string name;  // of the dataset
  std::vector<std::string> files, tables;
  std::vector<utterance> all;
  std::vector<file_stretch> stretches;  // where sounds lie in their files; empty: they are whole files
  text_list keys;                       // empty: "manifest:line"
  text_list texts;
  std::vector<text_list> others;  // the fields that were asked for
  double max_overshoot = 0;
  double seconds = 0;  // of all that are known
  std::uint64_t fingerprint = 0;
  shared<const std::vector<std::uint64_t>> starts = nullptr;

  [[nodiscard]] std::uint64_t size() const noexcept { return all.size(); }
  /// Sums up, when all are there. Throws `errc::argument` if there are none, or for `max_overshoot`.
  void close(std::string_view source);
  [[nodiscard]] std::string key(std::size_t i) const;
  [[nodiscard]] std::string describe(std::string_view source) const;
  /// Throws `errc::argument` if there is no such sample.
  [[nodiscard]] std::size_t checked(std::uint64_t index) const;
  /// In milliseconds, rounded up. Throws `errc::missing` if it is not known.
  [[nodiscard]] std::uint64_t milliseconds(std::size_t i) const;
};

/// A worker's files of sounds. A file stays mapped until the worker needs its place for another one, so that
/// neither the number of files is bounded nor a long recording read anew for each of its segments.
class mapped_sounds {
 public:
  /// The bytes of a file, until the next sample.
  [[nodiscard]] bytes_view show(const std::string& path, std::uint32_t number);
  void begin() noexcept { shown_ = nullptr; }
  /// Throws `errc::io` if the file that was shown has shrunk.
  void confirm() const {
    if (shown_ != nullptr) shown_->kept->check_lost(*path_);
  }

 private:
  static constexpr std::uint32_t places = 16;
  struct place {
    std::optional<files::mapping> kept;
    std::uint32_t number = 0;
  };

  fixed_array<place> places_{places};
  const place* shown_ = nullptr;
  const std::string* path_ = nullptr;
};

/// The file of an utterance, not opened yet, with the segment of it that is meant. Valid during the call that
/// delivers its sample.
class utterance_blob {
 public:
  using unfinished = void;

  utterance_blob(const utterance_list& list, std::size_t i, mapped_sounds& sounds) noexcept
      : list_(&list), sounds_(&sounds), i_(i) {}

  [[nodiscard]] std::uint64_t size() const { return finish().size(); }
  void read_into(mutable_bytes into) const;
  [[nodiscard]] bytes_view finish() const;
  [[nodiscard]] sound_segment segment() const noexcept {
    const utterance& one = list_->all[i_];
    return {one.offset, one.duration, one.channel, list_->max_overshoot};
  }

 private:
  const utterance_list* list_;
  mapped_sounds* sounds_;
  std::size_t i_;
};

/// Asks the system to read an utterance ahead.
void read_utterance_ahead(const utterance_list& list, std::uint64_t index) noexcept;

}  // namespace detail

/// How long the utterances of a manifest are, in milliseconds, rounded up: lengths for `bucket_by`,
/// `batch_by`, `pack` and `subset`, which read no sound. Made by `durations()` of the source. Copies share
/// the manifest; thread-safe.
class utterance_durations {
 public:
  using value_type = std::uint64_t;

  explicit utterance_durations(shared<const detail::utterance_list> list) noexcept : list_(std::move(list)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return list_->size(); }
  /// Throws `errc::missing` for a duration that the manifest does not say.
  [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const {
    return list_->milliseconds(detail::to_size(i));
  }
  [[nodiscard]] std::uint64_t dataset() const noexcept { return list_->fingerprint; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return list_->fingerprint; }
  [[nodiscard]] std::string describe() const { return detail::text({"durations of ", list_->name}); }

 private:
  shared<const detail::utterance_list> list_;
};

/// The source that `audio_manifest` and `lhotse_shar` make: see these. `Names` are the fields beside "audio",
/// "offset", "duration" and "text".
template <class Kind, class... Names>
class utterance_source : public opens_as_plan<utterance_source<Kind, Names...>> {
  static_assert(detail::names_differ<field<"audio", int>, field<"offset", int>, field<"duration", int>,
                                     field<"text", int>, basic_field<Names, int>...>(),
                "penstock: utterances have the fields audio, offset, duration and text; name others in <>, "
                "each of them once");

 public:
  using penstock_part = source_tag;
  using element =
      record<field<"audio", detail::utterance_blob>, field<"offset", double>, field<"duration", double>,
             field<"text", std::string_view>, basic_field<Names, std::string_view>...>;
  static constexpr std::string_view source_name = Kind::source_name;

  class reader {
   public:
    using worker = detail::mapped_sounds;

    explicit reader(shared<const detail::utterance_list> list) noexcept : list_(std::move(list)) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const std::size_t i = list_->checked(p.index);
      w.begin();
      try {
        try {
          deliver(i, w, sink, std::index_sequence_for<Names...>{});
        } catch (...) {
          w.confirm();  // what is left of a file that shrank may be the cause
          throw;
        }
        w.confirm();
      } catch (error& e) {
        e.in_file(url(i)).for_key(list_->key(i));
        throw;
      }
    }
    [[nodiscard]] std::string key(std::uint64_t index) const { return list_->key(list_->checked(index)); }
    /// The path of the file that the sound is in.
    [[nodiscard]] const std::string& url(std::uint64_t index) const {
      return list_->files[list_->all[list_->checked(index)].file];
    }
    void will_need(std::uint64_t index) const noexcept { detail::read_utterance_ahead(*list_, index); }

   private:
    template <class Sink, std::size_t... Is>
    void deliver(std::size_t i, worker& w, Sink& sink, std::index_sequence<Is...>) const {
      const detail::utterance& one = list_->all[i];
      sink(element(detail::utterance_blob(*list_, i, w), double{one.offset}, double{one.duration},
                   list_->texts[i], list_->others[Is][i]...));
    }

    shared<const detail::utterance_list> list_;
  };

  explicit utterance_source(detail::utterance_list&& list)
      : list_(new const detail::utterance_list(std::move(list))) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return list_->size(); }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return list_->starts; }
  /// Lengths for `bucket_by`, `batch_by`, `pack` and `subset`.
  [[nodiscard]] utterance_durations durations() const noexcept { return utterance_durations(list_); }
  /// Of all utterances whose durations are known.
  [[nodiscard]] double seconds() const noexcept { return list_->seconds; }
  /// Covers what the manifests say, but not the sounds, nor where the manifests lie.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return list_->fingerprint; }
  [[nodiscard]] std::string describe() const { return list_->describe(source_name); }
  [[nodiscard]] reader connect() const noexcept { return reader(list_); }

 private:
  shared<const detail::utterance_list> list_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/text/utterances.ipp>
#endif
