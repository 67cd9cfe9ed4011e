// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<pugixml.hpp>)
#error "penstock/storage/s3.hpp needs Boost.Beast, OpenSSL, pugixml and nlohmann-json: link penstock::s3"
#endif

#include <penstock/storage/braces.hpp>
#include <penstock/storage/resilience/retried_session.hpp>
#include <penstock/storage/s3/requests/stored_objects.hpp>
#include <penstock/storage/sidecar.hpp>

namespace penstock::inline v0_1 {

/// Storage of objects in S3, and in stores that speak its language: Google's, Ceph, MinIO, SeaweedFS, Swift,
/// AIStore.
///
///     const s3 shards("bucket/train-{0000..1023}.tar");
///     const s3 at_home({"s3://bucket/a.tar"}, {.place = {.endpoint = "http://10.0.0.7:9000"}});
///
/// In: `bucket/key` or `s3://bucket/key`, whose key is everything after the first slash, as it is: nothing is
/// decoded. Braces of a pattern are expanded by `expand_braces`; names of a list are taken as they are.
/// `s3::list` finds names. Nothing is opened before `connect`, and no request sent before the first use.
/// A session reads each range by one signed GET, and works otherwise as that of `http`: failures that may
/// pass are retried, and late reads get a second request, as the options of the connection say. Size and
/// ETag of an object are asked for when they are needed, or come with its first range; for more than 8
/// objects of a bucket they come from one list of what the keys have in common, unless the credentials do
/// not permit lists. From then on each request carries `If-Match`: an object that was replaced is an error,
/// never a mixture. A session that is told what to `expect`, as a dataset's runs do, asks for neither: the
/// first answer must have that ETag. Sessions share nothing, so that what is opened anew sees the objects of
/// today.
/// Credentials are looked for at the first request, as `s3_identity` says, and renewed before they expire.
/// What an answer asks for is done once for each request, and the request sent again: new credentials, the
/// store's time, another region.
/// Checksums: if a range is the whole object and the store gives a CRC-32, CRC-32C, CRC-64/NVME or SHA-256 of
/// it, the bytes are compared. Other ranges, checksums of parts (COMPOSITE), SHA-1 and MD5 are not.
/// Secrets: no name, error, description or counter has a key's id, a secret, a token or a signature.
/// Errors: as for `http`, with the store's code and what to do; SlowDown is one that may pass, and so are
/// bytes without their checksum; errc::argument also if there are no credentials.
/// Threads: as for `http`. Cost: that of `http`, and about ten SHA-256 of a few hundred bytes for each
/// request.
/// Source: Amazon S3 API Reference.
class s3 {
 public:
  static constexpr std::string_view schemes[] = {"s3"};

  /// What a run reads through; see `background_session`.
  using session = detail::retried_session<detail::plain_s3>;

  explicit s3(std::string_view pattern, s3_options options = {})
      : s3(expanded(pattern), std::string(pattern), std::move(options)) {}
  explicit s3(std::vector<std::string> names, s3_options options = {})
      : s3(std::move(names), {}, std::move(options)) {}
  s3(std::initializer_list<const char*> names, s3_options options = {})
      : s3(std::vector<std::string>(names.begin(), names.end()), std::move(options)) {}

  /// The names of the objects that begin with `prefix`, sorted: `bucket/folder/train-`, or `bucket` for all.
  /// Left out are names with `.penstock-` after the last slash, which Penstock keeps beside shards, and the
  /// empty objects ending in a slash that stand for folders. Asks the store, by one request per 1000 objects,
  /// each tried again as reads are.
  [[nodiscard]] static std::vector<std::string> list(std::string_view prefix,
                                                     const s3_options& options = {}) {
    detail::check(options.connection);
    detail::s3::store with(options);
    return detail::s3::names_in(with, prefix, detail::policy_of(options.connection));
  }

  /// The objects, each as `s3://bucket/key`.
  [[nodiscard]] std::span<const std::string> names() const noexcept { return list_->names; }
  /// Throws errc::argument for a region, an endpoint, a profile or a `ca_file` that cannot be used.
  [[nodiscard]] session connect() const {
    return {detail::plain_s3(list_, options_), detail::policy_of(options_.connection)};
  }
  /// See `has_sidecars`.
  [[nodiscard]] s3 sidecars(sidecar which) const { return with_names(which.of_each(names())); }
  /// See `renaming_storage`.
  [[nodiscard]] s3 with_names(std::vector<std::string> names) const {
    return s3(std::move(names), {}, options_);
  }
  [[nodiscard]] std::string describe() const {
    const std::string what =
        list_->pattern.empty() ? detail::text({names().size(), " objects"}) : list_->pattern;
    std::string line = detail::text({"s3(", what, ", "});
    if (!options_.place.endpoint.empty())
      detail::append(line, {"at ", without_secrets(options_.place.endpoint), ", "});
    detail::append(line, {options_.connection.connections, " connections",
                          options_.connection.verify ? "" : ", certificates not verified", ")"});
    return line;
  }

 private:
  s3(std::vector<std::string> names, std::string pattern, s3_options options) : options_(std::move(options)) {
    detail::check(options_.connection);
    (void)detail::policy_of(options_.connection);
    auto list = std::make_unique<detail::s3::object_names>();
    list->pattern = std::move(pattern);
    for (const std::string& one : names) {
      const detail::s3::object_name found = detail::s3::parse_object_name(one);
      detail::s3::check_bucket(found.bucket, false);
      list->names.push_back(detail::text({"s3://", found.bucket, "/", found.key}));
    }
    list_.reset(list.release());
  }

  /// Errors of patterns show the pattern, which may begin with what looks like a key and a secret.
  [[nodiscard]] static std::vector<std::string> expanded(std::string_view pattern) {
    std::string_view bucket = pattern;
    if (bucket.starts_with("s3://")) bucket.remove_prefix(5);
    bucket = bucket.substr(0, bucket.find('/'));
    if (bucket.find_first_of("@:") != std::string_view::npos) return {std::string(pattern)};  // refused
    if (const std::size_t star = pattern.find('*'); star != std::string_view::npos)
      throw error(errc::argument,
                  {"'", pattern,
                   "' has a *, which s3 does not expand: let the store list the names, as in "
                   "s3(s3::list(\"",
                   pattern.substr(0, std::min(star, pattern.find('{'))),
                   "\")), or write braces, as in train-{0000..0127}.tar; a key with a * belongs in a list of "
                   "names"});
    return expand_braces(pattern);
  }

  shared<const detail::s3::object_names> list_;
  s3_options options_;
};

static_assert(has_sidecars<s3>() && background_session<s3::session>,
              "s3 is a storage that reads in the background");

}  // namespace penstock::inline v0_1
