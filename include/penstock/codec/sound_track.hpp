// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<libavformat/avformat.h>) || !__has_include(<libavcodec/avcodec.h>)
#error "penstock/codec/sound_track.hpp needs FFmpeg's libraries: link penstock::video"
#endif

#include <penstock/audio/segment.hpp>
#include <penstock/codec/detail/sound_track_reader.hpp>
#include <penstock/codec/video.hpp>
#include <penstock/core/record.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct sound_of_no_film : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: with_sound<Film, Sound> adds the sound of a film, or of a clip: write the name of "
        "a field that decode<field<\"mp4\", video>> makes, and then one that no field has, as in "
        "map(with_sound<\"mp4\", \"sound\">())");
  }
};

}  // namespace mistakes

/// The per-worker memory of `sound_track` and of `with_sound`: the sound at hand, and its decoder.
struct sound_track_scratch {
  detail::sound_track_reader reader;
  sound_scratch sound;    ///< room for samples
  sound_scratch segment;  ///< for a segment of the sound
};

/// The sound of a film, or some time of it, which is not decoded yet: a `lazy_sound` over bytes that are
/// valid as long as the codec's input. Where the time is before or behind the sound, it is silent.
class film_sound : public sound_expression<film_sound> {
 public:
  /// From a frame of the sound on, which may be a negative number.
  film_sound(sound_track_scratch& scratch, std::int64_t first, std::uint64_t frames) noexcept
      : scratch_(&scratch), first_(first), frames_(frames) {}

  [[nodiscard]] sound_form form() const noexcept {
    const sound_form whole = scratch_->reader.form();
    return {frames_, whole.rate, whole.channels};
  }
  [[nodiscard]] bool parts_differ() const noexcept { return scratch_->reader.parts_differ(); }
  [[nodiscard]] sound_scratch& memory() const noexcept { return scratch_->sound; }
  void draw(const sound_part& part, const sound_place& place) const {
    if (!part.within(form())) [[unlikely]]
      throw error(errc::argument, {"the frames ", part.first, " to ", part.first + part.frames,
                                   " do not lie within the sound of ", frames_});
    const sound_form whole = scratch_->reader.form();
    const std::int64_t at = first_ + static_cast<std::int64_t>(part.first);
    const auto within = [&](std::int64_t frame) {
      return static_cast<std::uint64_t>(
          std::clamp(frame, std::int64_t{0}, static_cast<std::int64_t>(part.frames)));
    };
    const std::uint64_t begin = within(-at);
    const std::uint64_t end = std::max(begin, within(static_cast<std::int64_t>(whole.frames) - at));
    for (std::size_t c = 0; c < whole.channels; ++c) {
      std::fill_n(place.channel(c), begin, 0.0f);
      std::fill(place.channel(c) + end, place.channel(c) + part.frames, 0.0f);
    }
    if (begin == end) return;
    detail::naming_codec(detail::sound_track_reader::codec, [&] {
      scratch_->reader.draw({static_cast<std::uint64_t>(at) + begin, end - begin},
                            {place.data + begin, place.pitch});
    });
  }

 private:
  sound_track_scratch* scratch_;
  std::int64_t first_;
  std::uint64_t frames_;
};

/// The sound of mp4, mov, m4a, mkv and webm files, decoded with FFmpeg: AAC, Opus, Vorbis, MP3, FLAC, ALAC
/// and PCM.
///
/// In: any byte element; of an utterance of `audio_manifest`, the sound is the segment that is meant. Out: a
/// `lazy_sound`, of shape (channels, frames), to which the operations on sounds apply: what `ffmpeg -i
/// film.mp4 -f f32le` writes, without the delay of encoders, and as edit lists have it; the stream that
/// ffmpeg takes. TorchCodec's `AudioDecoder`. Pictures are not touched. For the sound that belongs to a clip,
/// write `decode<field<"mp4", video>>` and `with_sound`.
/// The first time that a film is met, its sound is decoded once, to know how many frames each packet has, and
/// the process keeps that. Any part equals that of the whole, to the bit for PCM, FLAC, ALAC, Vorbis and MP3
/// and within 1e-6 for Opus, which are decoded from the part, or from a second before it. AAC is decoded from
/// the beginning to the end of the part: the random generator of its decoder's noise runs on from packet to
/// packet. A part that follows the one before continues where that ended.
/// Kind: pointwise, keeps all guarantees. Memory: 32 bytes a packet in the process, `index_memory` at most;
/// for each worker a decoder and a packet's samples. Thread-safe, with a scratch per thread.
/// Throws `errc::format` for what is no such file, has no sound, is truncated or damaged, with the second;
/// and for sounds with a gap of more than 0.1 s, which ffmpeg would close, so that what follows comes too
/// early; `errc::limit` beyond `limits`.
/// Source: libavformat and libavcodec of FFmpeg 4.4 to 8.
///
///     auto speech = films | decode<field<"mp4", sound_track>> | map<"mp4">(mono(), crop(1.0, 2.5));
struct sound_track {
  audio_limits limits{};
  /// The bytes of indexes of sounds that the process keeps, of the films that were used last; 0 to make each
  /// anew.
  std::uint64_t index_memory = std::uint64_t{1} << 28;

  /// Whether a part of AAC equals that of the whole, to the bit. Otherwise it is decoded from a second
  /// before, which long films want: the same part always gives the same samples, with other noise than the
  /// whole has.
  bool exact = true;

  static constexpr std::string_view codec_name = detail::sound_track_reader::codec;
  static constexpr std::string_view extensions[] = {"mp4", "mkv", "webm", "mov", "m4v", "m4a", "mka"};
  static constexpr bool one_at_a_time = true;
  using scratch = sound_track_scratch;

  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept {
    return detail::film_container_of(bytes) != detail::film_container::none;
  }

  template <byte_element Bytes>
  [[nodiscard]] auto decode(const Bytes& in, scratch& s) const {
    s.reader.open(as_bytes(in), limits, index_memory, exact);
    const film_sound whole(s, 0, s.reader.form().frames);
    if constexpr (bytes_of_segment<Bytes>)
      return segment_of_sound<film_sound>(whole, in.segment(), s.segment);
    else
      return whole;
  }
};

namespace detail {

template <class V>
inline constexpr bool is_film_or_clip = std::same_as<V, film>;
template <class Each>
inline constexpr bool is_film_or_clip<film_clip<film, Each>> = true;

template <class V, class Film, class Sound>
consteval auto with_sound_mistake() {
  if constexpr (any_record<V>) {
    if constexpr (!has_field<V, Film> || has_field<V, Sound>)
      return mistakes::sound_of_no_film{};
    else
      return mistakes::unless<
          is_film_or_clip<std::remove_cvref_t<std::tuple_element_t<V::template index_of<Film>, V>>>,
          mistakes::sound_of_no_film>{};
  } else {
    return mistakes::sound_of_no_film{};
  }
}

template <class R, class Field>
struct record_and;
template <class... Fields, class Field>
struct record_and<record<Fields...>, Field>
    : std::type_identity<record<
          basic_field<typename Fields::name_type, std::remove_cvref_t<typename Fields::type>>..., Field>> {};

/// The sound from when the first of these frames begins to be shown to when the last one ceases to be.
[[nodiscard]] inline film_sound sound_between(const film& of, std::uint64_t first, std::uint64_t last,
                                              const sound_track& codec, sound_track_scratch& scratch) {
  return naming_codec(sound_track::codec_name, [&]() -> film_sound {
    scratch.reader.open(of.file(), codec.limits, codec.index_memory, codec.exact);
    const sound_form form = scratch.reader.form();
    constexpr double most = 1e9;  // seconds; more than any limit admits
    const double begin = of.time_of(first);
    const double before = std::clamp(begin - scratch.reader.begin_time(), -most, most);
    const double seconds = std::clamp(of.end_of(last) - begin, 0.0, most);
    const std::uint64_t frames = frames_in(seconds, form.rate);
    check_sound_form({frames, form.rate, form.channels}, codec.limits, "film's");
    return {scratch, std::llround(before * form.rate), frames};
  });
}
[[nodiscard]] inline film_sound sound_of(const film& all, const sound_track& codec,
                                         sound_track_scratch& scratch) {
  if (all.frames() == 0) throw error(errc::shape, "with_sound: the film has no frames");
  return sound_between(all, 0, all.frames() - 1, codec, scratch);
}
template <class Each>
[[nodiscard]] film_sound sound_of(const film_clip<film, Each>& clip, const sound_track& codec,
                                  sound_track_scratch& scratch) {
  const auto [first, last] = std::minmax_element(clip.frames().begin(), clip.frames().end());
  return sound_between(clip.film(), *first, *last, codec, scratch);
}

}  // namespace detail

/// What `with_sound` makes: a function for `map`.
template <class Film, class Sound>
class with_sound_operation {
 public:
  using accepts_call = void;
  using makes_fields = void;
  using scratch = sound_track_scratch;
  template <class V>
  using wrong_argument_for = decltype(detail::with_sound_mistake<std::remove_cvref_t<V>, Film, Sound>());

  explicit with_sound_operation(const sound_track& codec) : codec_(codec) {}

  template <class V>
    requires(detail::is_right<wrong_argument_for<V>>)
  [[nodiscard]] auto operator()(V&& sample, const call<scratch>& c) const {
    using type = std::remove_cvref_t<V>;
    const film_sound sound = detail::sound_of(get<type::template index_of<Film>>(sample), codec_, c.scratch);
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return typename detail::record_and<type, basic_field<Sound, film_sound>>::type(
          get<Is>(std::forward<V>(sample))..., sound);
    }(std::make_index_sequence<type::size>{});
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"with_sound<\"", Film::value, "\", \"", Sound::value, "\">"});
  }

 private:
  sound_track codec_;
};

/// Adds a field with the sound of a film, or of a clip: from when its first frame begins to be shown to when
/// its last one ceases to be, whatever was drawn. TorchCodec's `get_samples_played_in_range` with the clip's
/// times.
///
/// In: a record with the field `Film`, a lazy film or a clip of it. Out: the record with the field `Sound`
/// behind the others: a lazy sound of the film's rate and channels, to which the operations on sounds apply.
/// It is silent where the film has pictures and no sound. Clips of a film with a steady rate that are as long
/// have sounds that are as long; of others, `pad_to` and `crop` make them so. Pointwise. Otherwise as
/// `sound_track`, whose options it takes.
///
///     auto both = films | decode<field<"mp4", video>> |
///                 map<"mp4">(random_clip(16, {.stride = 4}), resize(112, 112)) |
///                 map(with_sound<"mp4", "sound">()) | map<"sound">(mono(), pad_to(2.5), crop(0.0, 2.5));
template <fixed_string Film, fixed_string Sound>
[[nodiscard]] with_sound_operation<name_of<Film>, name_of<Sound>> with_sound(const sound_track& codec = {}) {
  return with_sound_operation<name_of<Film>, name_of<Sound>>(codec);
}

}  // namespace penstock::inline v0_1
