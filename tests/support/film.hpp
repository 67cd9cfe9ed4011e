// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Film files that the program ffmpeg writes, and their frames as it decodes them, one after another.

#include <penstock/codec/video.hpp>

#include "support/codec_test.hpp"
#include "support/external_program.hpp"
#include "support/temp_dir.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace penstock_test {

/// How a film is made, and how many frames it has.
struct film_kind {
  std::string name;     ///< of the file, with its extension
  std::string encoder;  ///< without it the film is left out
  std::string options;  ///< behind `-i`
  std::uint32_t frames = 0;
  std::uint32_t width = 160, height = 96;  ///< as shown
  /// of the pictures; a picture of its own for each frame by default
  std::string source = "";
};

[[nodiscard]] inline bool have_ffmpeg() { return have_program("ffmpeg", "ffmpeg -version"); }
[[nodiscard]] inline bool have_encoder(const std::string& encoder) {
  return run_program("ffmpeg -hide_banner -h encoder=" + encoder + " | grep -q '^Encoder " + encoder + " '")
             .status == 0;
}
[[nodiscard]] inline std::string quoted_path(const std::filesystem::path& path) {
  return "'" + path.string() + "'";
}

/// Writes the film; fails the test if ffmpeg does.
inline std::filesystem::path write_film(const temp_dir& folder, const film_kind& kind) {
  const std::filesystem::path path = folder / kind.name;
  const std::string source =
      kind.source.empty() ? "-f lavfi -i testsrc2=s=160x96:r=25:d=" + std::to_string(kind.frames / 25.0)
                          : kind.source;
  const program_result made = run_program("ffmpeg -hide_banner -v error -y -threads 1 " + source + " " +
                                          kind.options + " " + quoted_path(path));
  INFO(kind.name << ": " << made.output);
  REQUIRE(made.status == 0);
  return path;
}

/// All frames in RGB, as ffmpeg decodes them from the first to the last.
[[nodiscard]] inline codec_test::byte_vector frames_by_ffmpeg(const temp_dir& folder,
                                                              const std::filesystem::path& film) {
  const std::filesystem::path raw = folder / "frames.rgb";
  const program_result made =
      run_program("ffmpeg -hide_banner -v error -y -threads 1 -i " + quoted_path(film) +
                  " -map 0:v:0 -fps_mode passthrough -f rawvideo -pix_fmt rgb24 " + quoted_path(raw));
  INFO(made.output);
  REQUIRE(made.status == 0);
  return codec_test::file_bytes(raw);
}

/// A film in memory that is open, with its scratch.
struct open_film {
  codec_test::byte_vector bytes;
  penstock::video codec;
  penstock::video_scratch scratch;

  explicit open_film(codec_test::byte_vector file, const penstock::video& with = {})
      : bytes(std::move(file)), codec(with) {
    av_log_set_level(AV_LOG_QUIET);  // demuxers write what they think of damaged files
  }

  [[nodiscard]] penstock::film film() { return codec.decode(bytes, scratch); }
  /// These frames, one behind the other, without gaps.
  [[nodiscard]] codec_test::byte_vector frames(const std::vector<std::uint32_t>& numbers) {
    const penstock::film opened = film();
    const auto picture = opened.picture();
    const std::size_t one = penstock::detail::to_size(picture.shape().elements());
    codec_test::byte_vector all(one * numbers.size());
    opened.each_of({numbers.data(), numbers.size()}, [&](std::size_t i) {
      picture.write_to(penstock::destination<std::uint8_t>(
          reinterpret_cast<std::uint8_t*>(all.data()) + i * one, picture.shape()));
    });
    return all;
  }
};

/// What `frames` takes of all frames.
[[nodiscard]] inline codec_test::byte_vector chosen_frames(const codec_test::byte_vector& all,
                                                           std::size_t one,
                                                           const std::vector<std::uint32_t>& numbers) {
  codec_test::byte_vector chosen;
  for (const std::uint32_t n : numbers)
    chosen.insert(chosen.end(), all.begin() + static_cast<std::ptrdiff_t>(n * one),
                  all.begin() + static_cast<std::ptrdiff_t>((n + 1) * one));
  return chosen;
}

/// How many frames differ; all where their number does.
[[nodiscard]] inline std::size_t wrong_frames(const codec_test::byte_vector& found,
                                              const codec_test::byte_vector& expected, std::size_t one) {
  if (found.size() != expected.size()) return expected.size() / one;
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < found.size(); at += one)
    wrong += std::memcmp(found.data() + at, expected.data() + at, one) == 0 ? 0 : 1;
  return wrong;
}

/// Films of every codec, container and habit that frames are to be exact for.
[[nodiscard]] inline std::vector<film_kind> exact_films() {
  const std::string variable =
      "-vf \"settb=1/12800,setpts='(N+mod(N,3)*0.3)/25/TB'\" -fps_mode passthrough -enc_time_base 1:12800 "
      "-video_track_timescale 12800 ";
  return {
      {"h264_b.mp4", "libx264", "-c:v libx264 -g 30 -bf 3 -pix_fmt yuv420p", 100},
      {"h264_long.mp4", "libx264", "-c:v libx264 -g 600 -keyint_min 600 -sc_threshold 0 -pix_fmt yuv420p",
       650},
      {"h264_open.mp4", "libx264",
       "-c:v libx264 -x264-params open-gop=1:keyint=20:bframes=3:b-pyramid=normal -pix_fmt yuv420p", 100},
      {"h264_open.mkv", "libx264",
       "-c:v libx264 -x264-params open-gop=1:keyint=20:bframes=4 -pix_fmt yuv420p", 100},
      {"h264_refresh.mp4", "libx264", "-c:v libx264 -x264-params intra-refresh=1:keyint=25 -pix_fmt yuv420p",
       100},
      {"h264_fragments.mp4", "libx264",
       "-c:v libx264 -g 12 -movflags frag_keyframe+empty_moov -pix_fmt yuv420p", 60},
      {"h264_444.mp4", "libx264", "-c:v libx264 -g 30 -pix_fmt yuv444p", 40},
      {"h264_709.mp4", "libx264",
       "-c:v libx264 -g 30 -pix_fmt yuv420p -colorspace bt709 -color_primaries bt709 -color_trc bt709", 40},
      {"h264_full.mp4", "libx264", "-c:v libx264 -g 30 -pix_fmt yuvj420p", 40},
      {"h264_interlaced.mp4", "libx264", "-c:v libx264 -g 30 -flags +ildct+ilme -pix_fmt yuv420p", 40},
      {"hevc.mp4", "libx265", "-c:v libx265 -x265-params keyint=30:log-level=error -pix_fmt yuv420p", 80},
      {"hevc_open.mkv", "libx265",
       "-c:v libx265 -x265-params open-gop=1:keyint=20:bframes=4:log-level=error -pix_fmt yuv420p", 100},
      {"vp8.webm", "libvpx", "-c:v libvpx -g 40 -auto-alt-ref 1 -lag-in-frames 16 -b:v 200k", 80},
      {"vp9.webm", "libvpx-vp9", "-c:v libvpx-vp9 -g 40 -cpu-used 8 -b:v 200k -pix_fmt yuv420p", 80},
      {"vp9.mp4", "libvpx-vp9", "-c:v libvpx-vp9 -g 40 -cpu-used 8 -b:v 200k -pix_fmt yuv420p", 80},
      {"av1.mkv", "libaom-av1", "-c:v libaom-av1 -g 30 -cpu-used 8 -row-mt 0 -b:v 200k -pix_fmt yuv420p", 60},
      {"mpeg4_b.mp4", "mpeg4", "-c:v mpeg4 -g 25 -bf 2 -q:v 4", 80},
      {"mpeg4_b.mkv", "mpeg4", "-c:v mpeg4 -g 25 -bf 2 -q:v 4", 80},
      {"mpeg2.mkv", "mpeg2video", "-c:v mpeg2video -g 15 -bf 2 -q:v 4", 80},
      {"mjpeg.mov", "mjpeg", "-c:v mjpeg -q:v 3", 20},
      {"ffv1.mkv", "ffv1", "-c:v ffv1 -g 1 -pix_fmt yuv420p", 20},
      {"variable.mp4", "libx264", variable + "-c:v libx264 -g 25 -bf 3 -pix_fmt yuv420p", 75},
  };
}

}  // namespace penstock_test
