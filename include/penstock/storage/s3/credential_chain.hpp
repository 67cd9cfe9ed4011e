// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/storage/s3/credential_chain.hpp needs nlohmann-json: link penstock::s3"
#endif

#include <penstock/storage/s3/requests/credential_answers.hpp>

namespace penstock::inline v0_1 {

/// As whom the store is asked. Left alone, credentials are looked for where the tools of AWS do; the first
/// place that has some decides:
///
/// 1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN
/// 2. the web identity of AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN
/// 3. the profile AWS_PROFILE, or `default`, of ~/.aws/credentials and ~/.aws/config: keys, or a role with
/// its source 4. the service of the container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI
/// 5. the instance metadata of EC2, version 2
///
///     const s3_identity team{.profile = "training"};
struct s3_identity {
  /// These and no others; `s3_credentials()` for requests that are not signed.
  std::optional<s3_credentials> credentials = std::nullopt;
  /// The profile instead of AWS_PROFILE's; then 1 and 2 are left out.
  std::string profile = {};
};

namespace detail::s3 {

/// Looks for credentials. Copies share nothing; each call reads the files and asks the services again.
class credential_chain {
 public:
  credential_chain(s3_identity identity, s3_environment environment, http_call http,
                   clock_listener clock = {})
      : identity_(std::move(identity)), environment_(std::move(environment)), http_(http), clock_(clock) {}

  /// Throws errc::argument, with the places that were looked at, if there are none; errc::argument for what
  /// is wrong in a file or a variable; errc::io, marked recurring where asking again would not help, for a
  /// service.
  [[nodiscard]] s3_credentials find(wall_time now) {
    if (identity_.credentials)
      return *identity_.credentials == s3_credentials() ? s3_credentials()
                                                        : checked(*identity_.credentials, "what was given");
    if (identity_.profile.empty())
      if (auto found = of_environment()) return std::move(*found);
    const profile_files files(environment_);
    const std::string profile = profile_name(environment_, files, identity_.profile);
    std::string region = resolved({}, environment_, files, profile).region;
    if (region == "auto") region = "us-east-1";  // STS has no other stores
    const credential_surroundings with{environment_, files, http_, now, region, clock_, &metadata_answers_};
    if (identity_.profile.empty())
      if (auto found = web_identity(with)) return std::move(*found);
    std::vector<std::string> passed;
    if (auto found = of_profile(with, profile, passed)) return std::move(*found);
    if (auto found = of_container(with)) return std::move(*found);
    if (auto found = of_instance(with)) return std::move(*found);
    throw error(errc::argument,
                {"there are no credentials for S3: AWS_ACCESS_KEY_ID is not set, the profile '", profile,
                 "' of ", files.paths(),
                 " has none, and there is no web identity, no service of a container and no instance "
                 "metadata; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or read without signing with "
                 ".credentials = s3_credentials()"});
  }

 private:
  [[nodiscard]] std::optional<s3_credentials> of_environment() const {
    const auto id = environment_.value("AWS_ACCESS_KEY_ID"),
               secret = environment_.value("AWS_SECRET_ACCESS_KEY");
    if (!id && !secret) return std::nullopt;
    if (!id || !secret)
      throw error(errc::argument, {id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY", " is set, but ",
                                   id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID", " is not"});
    return checked({std::string(*id), std::string(*secret),
                    std::string(environment_.value("AWS_SESSION_TOKEN").value_or(""))},
                   "the environment");
  }

  [[nodiscard]] static std::optional<s3_credentials> keys_of(const credential_surroundings& with,
                                                             const std::string& profile) {
    const auto id = with.files.value(profile, "aws_access_key_id");
    const auto secret = with.files.value(profile, "aws_secret_access_key");
    if (!id && !secret) return std::nullopt;
    return checked({std::string(id.value_or("")), std::string(secret.value_or("")),
                    std::string(with.files.value(profile, "aws_session_token").value_or(""))},
                   text({"the profile '", profile, "'"}));
  }
  /// `passed` holds the profiles on the way here: their roles take each other as sources.
  [[nodiscard]] std::optional<s3_credentials> of_profile(const credential_surroundings& with,
                                                         const std::string& profile,
                                                         std::vector<std::string>& passed) const {
    const bool again = std::find(passed.begin(), passed.end(), profile) != passed.end();
    const auto arn = with.files.value(profile, "role_arn");
    if (arn && !again) {
      passed.push_back(profile);
      return of_role(with, profile, std::string(*arn), passed);
    }
    if (auto found = keys_of(with, profile)) return found;
    if (again)
      throw error(errc::argument, {"the role of the profile '", profile, "' has itself as its source"});
    for (const char* const name :
         {"credential_process", "sso_session", "sso_start_url", "sso_account_id", "login_session"})
      if (with.files.value(profile, name))
        throw error(errc::argument,
                    {"the profile '", profile, "' has its credentials by ", name,
                     ", which is not supported: export them with `aws configure export-credentials "
                     "--format env`, or name another profile"});
    return std::nullopt;
  }
  [[nodiscard]] s3_credentials of_role(const credential_surroundings& with, const std::string& profile,
                                       std::string arn, std::vector<std::string>& passed) const {
    const auto value = [&](std::string_view name) {
      return std::string(with.files.value(profile, name).value_or(""));
    };
    const auto fail = [&](std::initializer_list<piece> why) {
      std::string line = text({"the role of the profile '", profile, "' "});
      append(line, why);
      throw error(errc::argument, line);
    };
    role_request role{std::move(arn), value("role_session_name"), value("external_id")};
    if (const std::string token = value("web_identity_token_file"); !token.empty())
      return web_identity(with, role, token, text({"the profile '", profile, "'"}));
    if (!value("mfa_serial").empty()) fail({"has an mfa_serial, and nobody is here to type the code"});
    const std::string parent = value("source_profile"), place = value("credential_source");
    std::optional<s3_credentials> source;
    if (!parent.empty() && !place.empty()) {
      fail({"has a source_profile and a credential_source: only one of them can be"});
    } else if (!parent.empty()) {
      if (!with.files.has(parent))
        fail({"has the source_profile '", parent, "', which is not in ", with.files.paths()});
      source = of_profile(with, parent, passed);
    } else if (place == "Environment") {
      source = of_environment();
    } else if (place == "EcsContainer") {
      source = of_container(with);
    } else if (place == "Ec2InstanceMetadata") {
      source = of_instance(with);
    } else {
      fail(
          {"needs a source_profile, or a credential_source that is Environment, EcsContainer or "
           "Ec2InstanceMetadata"});
    }
    if (!source) fail({"finds no credentials at its source, '", parent.empty() ? place : parent, "'"});
    return ask_sts(with, "AssumeRole", role, {}, *source);
  }

  s3_identity identity_;
  s3_environment environment_;
  http_call http_;
  clock_listener clock_;
  bool metadata_answers_ = false;
};

}  // namespace detail::s3

}  // namespace penstock::inline v0_1
