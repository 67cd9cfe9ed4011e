// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/crypto.h>)
#error "penstock/storage/s3/environment.hpp needs OpenSSL: link penstock::s3"
#endif

#include <penstock/core/cpp20.hpp>
#include <penstock/storage/s3/requests/http_call.hpp>

#include <array>
#include <cstdlib>
#include <utility>

namespace penstock::inline v0_1 {

/// The environment variables that a connection to S3 reads, as they were at one moment. A variable that is
/// empty counts as not set.
///
///     const s3_environment two({{"AWS_REGION", "eu-central-1"}, {"AWS_PROFILE", "training"}});
///     const bool right = two.value("AWS_REGION") == "eu-central-1" && !two.value("AWS_ENDPOINT_URL");
///
/// It may hold secrets: it has no operator<<, and errors name a variable but never its value.
class s3_environment {
 public:
  s3_environment() = default;
  explicit s3_environment(std::vector<std::pair<std::string, std::string>> values) {
    for (auto& [name, given] : values) values_.push_back({std::move(name), std::move(given)});
  }
  /// Those of this process. Call it where no thread changes the environment.
  [[nodiscard]] static s3_environment of_process() {
    s3_environment made;
    for (const char* const name : names)
      if (const char* const given = std::getenv(name)) made.values_.push_back({name, given});
    return made;
  }

  [[nodiscard]] std::optional<std::string_view> value(std::string_view name) const noexcept {
    for (const detail::s3::name_value& one : values_)
      if (one.name == name && !one.value.empty()) return one.value;
    return std::nullopt;
  }

 private:
  static constexpr std::array names{"HOME",
                                    "AWS_ACCESS_KEY_ID",
                                    "AWS_SECRET_ACCESS_KEY",
                                    "AWS_SESSION_TOKEN",
                                    "AWS_PROFILE",
                                    "AWS_REGION",
                                    "AWS_DEFAULT_REGION",
                                    "AWS_ENDPOINT_URL",
                                    "AWS_ENDPOINT_URL_S3",
                                    "AWS_ENDPOINT_URL_STS",
                                    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
                                    "AWS_SHARED_CREDENTIALS_FILE",
                                    "AWS_CONFIG_FILE",
                                    "AWS_WEB_IDENTITY_TOKEN_FILE",
                                    "AWS_ROLE_ARN",
                                    "AWS_ROLE_SESSION_NAME",
                                    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                    "AWS_EC2_METADATA_DISABLED",
                                    "AWS_EC2_METADATA_SERVICE_ENDPOINT"};

  std::vector<detail::s3::name_value> values_;
};

}  // namespace penstock::inline v0_1
