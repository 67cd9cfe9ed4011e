// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<sndfile.h>)
#error "penstock/codec/audio.hpp needs libsndfile: link penstock::audio"
#endif

#include <penstock/audio/audio_limits.hpp>
#include <penstock/audio/operation.hpp>
#include <penstock/audio/segment.hpp>
#include <penstock/base/owned.hpp>
#include <penstock/codec/concepts.hpp>
#include <penstock/codec/detail/lazy_codec.hpp>
#include <penstock/codec/detail/mp3_length.hpp>
#include <penstock/codec/detail/sound_header.hpp>
#include <penstock/core/known_formats.hpp>

#include <sndfile.h>

#include <algorithm>
#include <bit>
#include <memory>

namespace penstock::inline v0_1 {

namespace detail {

/// A file in memory, as libsndfile reads one.
struct sound_bytes {
  bytes_view file;
  std::size_t at = 0;

  [[nodiscard]] static SF_VIRTUAL_IO* functions() noexcept {
    static SF_VIRTUAL_IO all{length, seek, read, refuse, tell};
    return &all;
  }

 private:
  [[nodiscard]] static sound_bytes& of(void* user) noexcept { return *static_cast<sound_bytes*>(user); }
  static sf_count_t length(void* user) noexcept { return static_cast<sf_count_t>(of(user).file.size()); }
  static sf_count_t tell(void* user) noexcept { return static_cast<sf_count_t>(of(user).at); }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) noexcept {
    sound_bytes& self = of(user);
    const std::size_t from = whence == SEEK_CUR ? self.at : whence == SEEK_END ? self.file.size() : 0;
    const auto before = static_cast<std::int64_t>(from);
    if (offset < -before || offset > static_cast<std::int64_t>(self.file.size()) - before) return -1;
    self.at = static_cast<std::size_t>(before + offset);
    return before + offset;
  }
  static sf_count_t read(void* into, sf_count_t count, void* user) noexcept {
    sound_bytes& self = of(user);
    const std::size_t there = self.file.size() - self.at;
    const std::size_t taken = count <= 0 ? 0 : std::min(there, static_cast<std::size_t>(count));
    if (taken != 0) std::memcpy(into, self.file.data() + self.at, taken);
    self.at += taken;
    return static_cast<sf_count_t>(taken);
  }
  static sf_count_t refuse(const void* /*from*/, sf_count_t /*count*/, void* /*user*/) noexcept { return 0; }
};

/// How samples of a wav file are read without libsndfile.
enum class plain_samples : std::uint8_t { none, int16, float32 };

struct sound_job {
  bytes_view file;
  sound_form form;
  std::uint64_t number = 0;  ///< of the sound, among those of this worker
  std::size_t data = 0;      ///< where plain samples begin
  sound_format format = sound_format::unknown;
  plain_samples plain = plain_samples::none;
  bool recover = false;
};

/// A sample of a wav file as a real number.
template <class T>
[[nodiscard]] float plain_sample(const std::byte* at) noexcept {
  if constexpr (std::same_as<T, float>)
    return std::bit_cast<float>(load_little<std::uint32_t>(at));
  else
    return static_cast<float>(static_cast<std::int16_t>(load_little<std::uint16_t>(at))) * (1.0f / 32'768.0f);
}
template <class T>
void read_plain(const sound_job& what, const sound_part& part, const sound_place& place) noexcept {
  const std::size_t channels = what.form.channels, frames = to_size(part.frames);
  const std::byte* const from = what.file.data() + what.data + to_size(part.first) * channels * sizeof(T);
  for (std::size_t c = 0; c < channels; ++c) {
    float* const to = place.channel(c);
    if (channels == 1) {
      for (std::size_t i = 0; i < frames; ++i) to[i] = plain_sample<T>(from + i * sizeof(T));
    } else {
      for (std::size_t i = 0; i < frames; ++i) to[i] = plain_sample<T>(from + (i * channels + c) * sizeof(T));
    }
  }
}

}  // namespace detail

/// The per-worker memory of `audio`: the file that libsndfile has open, which it closes with the next one.
class audio_scratch : public detail::damage_count {
 public:
  sound_scratch sound;    ///< room for samples
  sound_scratch segment;  ///< for a segment of the sound

  /// Opens a file, and returns its form, or closes what was open and throws.
  [[nodiscard]] sound_form open(detail::sound_job& what) {
    close();
    what.number = ++number_;
    SF_INFO info = open_again(what);
    if (!file_)
      throw error(errc::format, {"the ", detail::format_name(what.format),
                                 " sound has a header that libsndfile cannot read"})
          .at_offset(bytes_->at);
    return {info.frames < 0 ? 0 : static_cast<std::uint64_t>(info.frames),
            info.samplerate < 0 ? 0 : static_cast<std::uint32_t>(info.samplerate),
            info.channels < 0 ? 0 : static_cast<std::uint32_t>(info.channels)};
  }
  /// Begins a sound of which libsndfile is not asked.
  void begin(detail::sound_job& what) noexcept {
    close();
    what.number = ++number_;
  }
  void draw(const detail::sound_job& what, const sound_part& part, const sound_place& place) {
    if (part.frames == 0) return;
    switch (what.plain) {
      case detail::plain_samples::int16:
        return detail::read_plain<std::int16_t>(what, part, place);
      case detail::plain_samples::float32:
        return detail::read_plain<float>(what, part, place);
      case detail::plain_samples::none:
        break;
    }
    const std::uint64_t there = decode(what, part, place);
    if (there == part.frames) return;
    close();  // it is not known where libsndfile is
    if (!what.recover) refuse_end(what, part.first + there);
    for (std::size_t c = 0; c < what.form.channels; ++c)
      std::fill_n(place.channel(c) + there, detail::to_size(part.frames - there), 0.0f);
    damage();
  }

 private:
  // frames that are read at once, so that they stay in the cache
  static constexpr std::uint64_t block = 4096;

  [[noreturn, gnu::cold]] void refuse_end(const detail::sound_job& what, std::uint64_t frame) const {
    throw error(errc::format,
                {"the ", detail::format_name(what.format), " sound is truncated or damaged: it ends at ",
                 detail::time_text(frame, what.form.rate), " of ",
                 detail::time_text(what.form.frames, what.form.rate),
                 "; write audio{.recover = true} for silence in the place of what is missing"})
        .at_offset(bytes_->at);
  }
  void close() noexcept {
    if (bytes_) bytes_->file = {};  // its bytes may be gone, and closing reads nothing
    if (bytes_) bytes_->at = 0;
    file_.reset();
    opened_ = 0;
  }
  SF_INFO open_again(const detail::sound_job& what) {
    if (!bytes_) bytes_ = std::make_unique<detail::sound_bytes>();
    *bytes_ = {what.file};
    SF_INFO info{};
    file_.reset(sf_open_virtual(detail::sound_bytes::functions(), SFM_READ, &info, bytes_.get()));
    opened_ = what.number;
    at_ = 0;
    return info;
  }
  /// Decodes frames, and returns how many there were.
  [[nodiscard]] std::uint64_t decode(const detail::sound_job& what, const sound_part& part,
                                     const sound_place& place) {
    if (opened_ != what.number || !file_) {
      close();
      static_cast<void>(open_again(what));
      if (!file_) return 0;
    }
    if (!go_to(what, part.first)) return 0;
    const std::size_t channels = what.form.channels;
    if (channels == 1) return read(place.data, part.frames);
    std::uint64_t done = 0;
    while (done < part.frames) {
      const std::uint64_t wanted = std::min(block, part.frames - done);
      float* const frames = detail::room_for_samples(sound.samples, block * channels);
      const std::uint64_t got = read(frames, wanted);
      for (std::size_t c = 0; c < channels; ++c) {
        float* const to = place.channel(c) + done;
        for (std::size_t i = 0; i < got; ++i) to[i] = frames[i * channels + c];
      }
      done += got;
      if (got != wanted) break;
    }
    return done;
  }
  [[nodiscard]] std::uint64_t read(float* into, std::uint64_t frames) {
    const sf_count_t got = sf_readf_float(file_.get(), into, static_cast<sf_count_t>(frames));
    const auto done = got < 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(got);
    at_ += done;
    return done;
  }
  /// Makes a frame the next one. libsndfile's seeks are not exact in all formats: Vorbis sometimes begins at
  /// another frame, and MP3 lacks bits of the frames before, so that these are decoded from the beginning.
  /// Opus needs 80 ms to forget where it began; a second leaves no difference.
  [[nodiscard]] bool go_to(const detail::sound_job& what, std::uint64_t frame) {
    if (at_ == frame) return true;
    std::uint64_t begin = frame;
    switch (what.format) {
      case detail::sound_format::ogg:
      case detail::sound_format::mp3:
        begin = frame < at_ ? 0 : at_;
        break;
      case detail::sound_format::opus:
        begin = frame - std::min<std::uint64_t>(frame, what.form.rate);
        if (at_ > begin && at_ < frame) begin = at_;
        break;
      default:
        break;
    }
    if (begin == 0 && at_ != 0) {
      close();
      static_cast<void>(open_again(what));
      if (!file_) return false;
    }
    if (begin != at_) {
      if (sf_seek(file_.get(), static_cast<sf_count_t>(begin), SEEK_SET) != static_cast<sf_count_t>(begin))
        return false;
      at_ = begin;
    }
    while (at_ < frame) {
      const std::uint64_t wanted = std::min(block, frame - at_);
      if (read(detail::room_for_samples(sound.work, block * what.form.channels), wanted) != wanted)
        return false;
    }
    return true;
  }

  std::unique_ptr<detail::sound_bytes> bytes_;
  std::unique_ptr<SNDFILE, detail::freed_by<sf_close>> file_;
  std::uint64_t number_ = 0;  // sounds that were begun
  std::uint64_t opened_ = 0;  // the number of the one that is open
  std::uint64_t at_ = 0;      // the frame that is read next
};

/// A sound that is not decoded yet: a `lazy_sound` over bytes that are valid as long as the codec's input.
class stored_sound : public sound_expression<stored_sound> {
 public:
  stored_sound(audio_scratch& scratch, const detail::sound_job& what) noexcept
      : scratch_(&scratch), job_(what) {}

  [[nodiscard]] sound_form form() const noexcept { return job_.form; }
  [[nodiscard]] bool parts_differ() const noexcept { return job_.format == detail::sound_format::opus; }
  [[nodiscard]] sound_scratch& memory() const noexcept { return scratch_->sound; }
  void draw(const sound_part& part, const sound_place& place) const {
    if (!part.within(job_.form)) [[unlikely]]
      throw error(errc::argument, {"the frames ", part.first, " to ", part.first + part.frames,
                                   " do not lie within the sound of ", job_.form.frames});
    detail::naming_codec("audio", [&] { scratch_->draw(job_, part, place); });
  }

 private:
  audio_scratch* scratch_;
  detail::sound_job job_;
};

/// Sounds of WAV (also RF64), FLAC, Ogg with Vorbis or Opus, MP3, AIFF, AU, CAF and NIST SPHERE files,
/// decoded with libsndfile. The first bytes say which it is, not the name.
///
/// In: any byte element; of an utterance, as `audio_manifest` gives them, the sound is the segment that is
/// meant. Out: a `lazy_sound`, of shape (channels, frames), whose samples are `float`s from -1
/// to 1: integers of n bits divided by 2^(n-1). Only the header is read, until it is known where the samples
/// go and which of them are needed; then those are decoded straight to their place, those of several channels
/// through a block that stays in the cache. Any part equals that of the
/// whole: WAV, FLAC, AIFF, AU and CAF seek; Opus is decoded from a second before, and within 1e-6; Vorbis and
/// MP3, where libsndfile's seeks are not exact, from the beginning to the end of the part.
/// Kind: pointwise, keeps all guarantees. Cost: libsndfile's, which allocates memory for each sound (and
/// forgets some at damaged headers of Ogg); WAV files of 16-bit integers and of 32-bit real numbers are read
/// without it, where they lie. Penstock itself allocates nothing once the scratch has grown. Thread-safe,
/// with a scratch per thread.
/// Throws `errc::limit` for forms beyond `limits`, before anything is allocated; `errc::format`, with the
/// offset, for what is no such file, has no samples, does not say how many, is damaged or ends before its
/// last sample, with the time where it does. Where that is known from the header or the pages (WAV, Ogg), it
/// is an error even if other frames are wanted. AIFF, AU and NIST files that are cut are taken for shorter
/// ones, and so are CAF files that lack little, and MP3 without a Xing tag, whose frames are counted; damage
/// within samples is seen where there are checksums (FLAC, Ogg). With `recover`, WAV and Vorbis files end
/// where they are cut, what is missing of others is silence, and each such sound that is read is a warning in
/// the run's counters; a cut Opus file stays an error, because libsndfile cannot tell its length.
///
///     auto speech = directory("speech") | decode<audio>(audio{.limits = {.channels = 2}});
struct audio {
  audio_limits limits{};
  bool recover = false;  ///< whether a damaged sound becomes what is left of it

  static constexpr std::string_view codec_name = "audio";
  static constexpr std::string_view extensions[] = {"wav",  "flac", "ogg", "oga", "opus", "mp3",
                                                    "aiff", "aif",  "au",  "caf", "sph"};
  static constexpr bool one_at_a_time = true;
  using scratch = audio_scratch;

  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept {
    return detail::sound_format_of(bytes) != detail::sound_format::unknown;
  }

  template <byte_element Bytes>
  [[nodiscard]] auto decode(const Bytes& in, scratch& s) const {
    const stored_sound whole(s, begin(as_bytes(in), s));
    if constexpr (bytes_of_segment<Bytes>)
      return segment_of_sound<stored_sound>(whole, in.segment(), s.segment);
    else
      return whole;
  }

 private:
  [[nodiscard]] detail::sound_job begin(bytes_view file, scratch& s) const {
    s.next();
    detail::sound_job what;
    what.file = file;
    what.format = detail::sound_format_of(file);
    what.recover = recover;
    const std::string_view name = detail::format_name(what.format);
    sound_form left;  // of a cut Ogg file, whose length libsndfile does not tell
    switch (what.format) {
      case detail::sound_format::unknown:
        refuse_format(file);
      case detail::sound_format::wav:
      case detail::sound_format::rf64:
        if (begin_wav(what, name, s)) return what;
        break;
      case detail::sound_format::flac:
        if (const sound_form form = detail::flac_form(file); form.channels != 0) {
          if (form.frames == 0)
            throw error(errc::format,
                        "the flac sound does not say how long it is; encode it again, to a file")
                .at_offset(21);
          check(form, name, 18);
        }
        break;
      case detail::sound_format::ogg:
      case detail::sound_format::opus:
        left = check_ogg(what, name, s);
        break;
      default:
        break;
    }
    what.form = s.open(what);
    constexpr auto unknown = static_cast<std::uint64_t>(SF_COUNT_MAX);
    if (what.form.frames == unknown && left.frames != 0) what.form.frames = left.frames;
    if (what.form.frames == unknown)
      throw error(errc::format, {"the ", name, " sound does not say how long it is"}).at_offset(0);
    check(what.form, name, 0);
    if (what.format == detail::sound_format::mp3) count_mp3(what, s);
    check_density(what, name);
    return what;
  }
  /// Without a tag that says how long the sound is, libsndfile takes the bit rate of the beginning for it,
  /// and reads no further than that.
  void count_mp3(detail::sound_job& what, scratch& s) const {
    const std::uint64_t samples = detail::mp3_samples_of(what.file);
    if (samples > what.form.frames) {
      if (recover) return s.damage();
      throw error(
          errc::format,
          {"the mp3 sound has no Xing tag, and changes its bit rate: libsndfile would end after ",
           detail::time_text(what.form.frames, what.form.rate), " of ",
           detail::time_text(samples, what.form.rate), "; write the tag, with ffmpeg -i a.mp3 -c copy b.mp3"})
          .at_offset(0);
    }
    if (samples != 0) what.form.frames = samples;
  }
  /// A frame of FLAC takes 10 bytes at least, and has 65,535 samples at most; MP3 has 24 in a byte at most.
  static void check_density(const detail::sound_job& what, std::string_view name) {
    const bool flac = what.format == detail::sound_format::flac;
    const std::uint64_t densest = flac ? 8'192 : 32;
    if ((!flac && what.format != detail::sound_format::mp3) || what.form.frames / densest <= what.file.size())
      return;
    throw error(errc::format, {"the ", name, " sound claims ", what.form.frames, " frames, and has ",
                               what.file.size(), " bytes, which cannot hold so many"})
        .at_offset(0);
  }
  /// Refuses a cut file before libsndfile sees it, which forgets memory at headers that are cut, and one with
  /// a damaged page, which it would leave out. Returns what is left of a cut one.
  sound_form check_ogg(const detail::sound_job& what, std::string_view name, scratch& s) const {
    const detail::ogg_end end = detail::ogg_end_of(what.file);
    if (end.whole) {
      const std::size_t damage = detail::ogg_damage_of(what.file);
      if (damage == what.file.size()) return {};
      if (!recover)
        throw error(errc::format, {"the ", name,
                                   " sound is damaged: a page is not as it was written; write "
                                   "audio{.recover = true} for what can be had"})
            .at_offset(damage);
      s.damage();
      return {};
    }
    const sound_form there = detail::ogg_form(what.file, end.position);
    if (!recover || there.frames == 0)
      throw error(errc::format, {"the ", name, " sound is truncated: it ends at ",
                                 detail::time_text(there.frames, there.rate), ", without a last page",
                                 recover ? "" : "; write audio{.recover = true} for what can be had"})
          .at_offset(what.file.size());
    s.damage();
    return there;
  }
  void check(const sound_form& form, std::string_view name, std::uint64_t offset) const {
    try {
      detail::check_sound_form(form, limits, name);
    } catch (error& e) {
      e.at_offset(offset);
      throw;
    }
  }
  /// Whether the samples can be read where they lie.
  bool begin_wav(detail::sound_job& what, std::string_view name, scratch& s) const {
    const detail::wav_layout layout = detail::wav_layout_of(what.file);
    if (!layout.known) return false;
    check({1, layout.form.rate, layout.form.channels}, name, 20);
    sound_form claimed = layout.form;
    if (layout.claimed > layout.there && !layout.open) {
      claimed.frames = layout.claimed / layout.block;
      check(claimed, name, 20);
      if (!recover)
        throw error(errc::format, {"the ", name, " sound is truncated: its header says ",
                                   detail::time_text(claimed.frames, claimed.rate), ", and it ends at ",
                                   detail::time_text(layout.form.frames, claimed.rate),
                                   "; write audio{.recover = true} for what is there"})
            .at_offset(what.file.size());
      s.damage();
    }
    const bool integers = layout.tag == 1 && layout.bits == 16, reals = layout.tag == 3 && layout.bits == 32;
    if ((!integers && !reals) || layout.block != layout.form.channels * (layout.bits / 8u)) return false;
    check(layout.form, name, 20);
    what.form = layout.form;
    what.data = layout.data;
    what.plain = integers ? detail::plain_samples::int16 : detail::plain_samples::float32;
    s.begin(what);
    return true;
  }
  [[noreturn, gnu::cold]] static void refuse_format(bytes_view file) {
    if (file.empty()) throw error(errc::format, "the sound is empty: it has no bytes");
    if (const std::string_view known = detail::known_format(file); !known.empty())
      throw error(errc::format, {"this is ", known, ", and no sound that libsndfile reads"}).at_offset(0);
    throw error(errc::format, "this is no sound of a known format: it begins as none does").at_offset(0);
  }
};

}  // namespace penstock::inline v0_1
