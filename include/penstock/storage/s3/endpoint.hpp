// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/crypto.h>)
#error "penstock/storage/s3/endpoint.hpp needs OpenSSL: link penstock::s3"
#endif

#include <penstock/storage/s3/profiles.hpp>
#include <penstock/storage/s3/requests/names.hpp>

namespace penstock::inline v0_1 {

/// Where the bucket is in a request's URL: in the host, `https://BUCKET.s3.REGION.amazonaws.com/KEY`, or in
/// the path. `automatic`: in the host at AWS if the bucket's name permits, in the path at other stores.
enum class s3_addressing { automatic, host, path };

/// Where a store is. What is left empty comes from the environment, then from the profile:
/// AWS_REGION, AWS_DEFAULT_REGION, `region`, else us-east-1;
/// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the `endpoint_url` of the profile's services or of the profile,
/// else AWS.
///
///     const s3_place google{.region = "auto", .endpoint = "https://storage.googleapis.com"};
struct s3_place {
  std::string region = {};
  /// `http://host:port`, perhaps with a path before all others, as AIStore's `/s3`.
  std::string endpoint = {};
  s3_addressing addressing = s3_addressing::automatic;
};

namespace detail::s3 {

/// Fills what is empty; see `s3_place`. AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true leaves endpoints out.
[[nodiscard]] inline s3_place resolved(s3_place place, const s3_environment& environment,
                                       const profile_files& files, std::string_view profile) {
  const auto first_of = [](std::optional<std::string_view> one, std::optional<std::string_view> other) {
    return one ? one : other;
  };
  if (place.region.empty()) {
    auto found = first_of(environment.value("AWS_REGION"), environment.value("AWS_DEFAULT_REGION"));
    if (!found) found = files.value(profile, "region");
    place.region = found.value_or("us-east-1");
  }
  const bool ignored =
      equal_but_for_case(environment.value("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").value_or(""), "true");
  if (place.endpoint.empty() && !ignored) {
    auto found = first_of(environment.value("AWS_ENDPOINT_URL_S3"), environment.value("AWS_ENDPOINT_URL"));
    if (!found) found = files.endpoint(profile, "s3");
    place.endpoint = found.value_or("");
  }
  return place;
}

inline void check_region(std::string_view region) {
  const auto fits = [](char c) { return is_digit(c) || is_letter(c) || c == '-' || c == '_'; };
  if (region.empty() || region.size() > 64 || !std::ranges::all_of(region, fits))
    throw error(errc::argument,
                {"'", region.substr(0, 80), "' is not a region: write a name such as us-east-1"});
}

/// The domain of AWS that a region belongs to.
[[nodiscard]] constexpr std::string_view aws_domain(std::string_view region) noexcept {
  return region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}

/// Turns buckets and keys into URLs. Its paths are encoded as `aws_signer` signs them.
class endpoint {
 public:
  /// Throws errc::argument for a region or an endpoint that can be none.
  explicit endpoint(const s3_place& place) : region_(place.region), addressing_(place.addressing) {
    check_region(region_);
    is_aws_ = place.endpoint.empty();
    if (is_aws_) {
      if (region_ == "auto")
        throw error(errc::argument,
                    "the region 'auto' is for stores that are not AWS: give their endpoint as well, "
                    "such as https://storage.googleapis.com");
      base_.scheme = "https";
      base_.host = text({"s3.", region_, ".", aws_domain(region_)});
      return;
    }
    base_ = parse_url(place.endpoint);
    if (base_.scheme == "s3")
      throw error(errc::argument, {"the endpoint '", without_secrets(place.endpoint),
                                   "' must begin with http:// or https://"});
    if (!base_.query.empty())
      throw error(errc::argument, {"the endpoint '", without_secrets(place.endpoint),
                                   "' has a query: give scheme, host, port and perhaps a path"});
    while (base_.path.ends_with('/')) base_.path.pop_back();
    const std::string_view host = base_.host;
    is_aws_ = host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn");
  }

  /// What requests are signed for.
  [[nodiscard]] const std::string& region() const noexcept { return region_; }
  /// Whether only TLS protects the body, so that it need not be hashed.
  [[nodiscard]] bool is_encrypted() const noexcept { return base_.scheme == "https"; }

  /// The URL of an object, or of a bucket. Throws errc::argument for a name that no bucket can have.
  [[nodiscard]] url of(std::string_view bucket, std::string_view object = {}) const {
    const bool in_host = is_in_host(bucket);
    url made = base_;
    if (in_host) {
      made.host.insert(0, ".").insert(0, bucket);
    } else {
      made.path.append("/").append(bucket);
    }
    if (in_host || !object.empty()) made.path += '/';
    append_encoded(made.path, object, true);
    return made;
  }

 private:
  [[nodiscard]] bool is_in_host(std::string_view bucket) const {
    check_bucket(bucket, is_aws_ && addressing_ != s3_addressing::path);
    const bool has_dots = bucket.find('.') != std::string_view::npos;
    if (addressing_ == s3_addressing::host) {
      check_bucket(bucket);
      if (base_.host.find(':') != std::string::npos || looks_like_ipv4(base_.host))
        throw error(errc::argument,
                    {"the endpoint's host is an address, before which no bucket can stand: use "
                     "s3_addressing::path"});
      if (has_dots && is_encrypted())
        throw error(errc::argument,
                    {"the bucket '", bucket,
                     "' has dots, so that no certificate fits its host: use s3_addressing::path"});
      return true;
    }
    return addressing_ == s3_addressing::automatic && is_aws_ && !(has_dots && is_encrypted());
  }

  url base_;
  std::string region_;
  s3_addressing addressing_;
  bool is_aws_ = false;
};

}  // namespace detail::s3

}  // namespace penstock::inline v0_1
