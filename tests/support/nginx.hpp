// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/certificates.hpp"
#include "support/external_program.hpp"
#include "support/server_process.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock_test {

/// The nginx of PATH, or the one that Debian keeps outside it.
[[nodiscard]] inline std::string nginx_program() {
  return run_program("command -v nginx").status == 0 ? "nginx" : "/usr/sbin/nginx";
}
/// Whether nginx is here. If it is not, the test says so and returns; in CI it fails.
[[nodiscard]] inline bool have_nginx() { return have_program("nginx", nginx_program() + " -v"); }

struct nginx_options {
  /// A TLS port for each of them; needs `have_openssl`.
  std::vector<certificate> certificates{};
  /// Further lines for each server's block: directives, and locations of the test's own.
  std::string lines{};
};

/// What nginx's log says of one request. Header fields that were not sent are empty.
struct logged_request {
  std::string method, target;
  int status = 0;
  std::string range, if_match, if_range, host, user_agent, user;
  std::uint64_t body_bytes = 0;  ///< sent
  std::uint64_t connection = 0;  ///< the same for requests of one connection
  std::uint64_t ordinal = 0;     ///< the request's number in its connection, from 1
  bool tls = false, v6 = false;
};

/// A real nginx on loopback, on free ports, in a folder of its own, until it is destroyed.
///
///     if (!have_nginx()) return;
///     nginx_server server;
///     server.put("a.tar", bytes);
///     fetch(server.url("a.tar"));          // http://127.0.0.1:12345/a.tar
///     CHECK(server.requests().size() == 1);
///
/// Every server serves its files in several ways, by the first part of the path:
///   /a.tar                  with ranges, ETag, If-Match, If-Range and keep-alive
///   /no-ranges/a.tar        without: 200 and the whole file (max_ranges 0)
///   /private/a.tar          asks for a user and a password: "user" and "password-of-user"
///   /slow/a.tar             at 20 KB/s (nginx grants the first second in full)
///   /redirect/301/a.tar     to /a.tar; also 302, 303, 307 and 308
///   /relative/a.tar         the same, with a Location that is only a path
///   /far/a.tar              to /a.tar on http://localhost, which is another host than 127.0.0.1
///   /plain/a.tar            to http://127.0.0.1/a.tar, also from https
///   /secure/a.tar           to the first TLS port
///   /loop                   to itself; /ping to /pong and back
///   /drop                   closes the connection without an answer
///   /status/503             also 400, 401, 403, 404, 429, 500, 502 and 504; 429 and 503 with Retry-After: 1
/// Requests with an absolute URI, as a client sends them to a proxy, are served as well. After a 412 nginx
/// closes the connection, though its answer promises to keep it.
/// Throws std::runtime_error, with nginx's words, if it does not start. `kill` and `start` may be called from
/// any thread, one at a time.
class nginx_server {
 public:
  explicit nginx_server(const nginx_options& options = {}) : lines_(options.lines) {
    std::filesystem::create_directory(root());
    std::filesystem::create_directory(folder_ / "temporary");
    std::ofstream(folder_ / "users") << "user:{PLAIN}password-of-user\n";
    if (!options.certificates.empty()) {
      authority_.emplace(folder_.path());
      for (const certificate kind : options.certificates) {
        authority_->make(kind);
        kinds_.push_back(kind);
      }
    }
    // Another program may take a port between the look and the start.
    for (int tries = 0; !process_; ++tries) {
      choose_ports();
      write_configuration();
      try {
        start();
      } catch (const std::runtime_error& e) {
        process_.reset();
        if (tries == 5 || std::string_view(e.what()).find("in use") == std::string_view::npos) throw;
      }
    }
  }
  nginx_server(const nginx_server&) = delete;
  nginx_server& operator=(const nginx_server&) = delete;

  /// The folder that is served.
  [[nodiscard]] std::filesystem::path root() const { return folder_ / "files"; }
  /// Writes a file there, by its path, making the folders of the path.
  void put(const std::string& name, std::string_view bytes) const {
    std::filesystem::create_directories((root() / name).parent_path());
    // Under another name first, so that no request meets half of it.
    const std::filesystem::path fresh = root() / (name + ".fresh");
    std::ofstream(fresh, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::filesystem::rename(fresh, root() / name);
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::uint16_t port(certificate kind) const { return tls_ports_.at(kind); }
  [[nodiscard]] std::string url(const std::string& path = {}) const {
    return "http://127.0.0.1:" + std::to_string(port_) + "/" + path;
  }
  [[nodiscard]] std::string url(certificate kind, const std::string& path,
                                const std::string& host = "localhost") const {
    return "https://" + host + ":" + std::to_string(port(kind)) + "/" + path;
  }
  /// The file of the authority to trust.
  [[nodiscard]] std::filesystem::path authority() const { return authority_.value().file(); }

  /// Ends it at once, with all its connections; `start` begins again on the same ports.
  void kill() {
    if (process_) process_->kill();
    process_.reset();
  }
  void start() {
    if (process_ && process_->running()) return;
    std::error_code ignored;
    std::filesystem::remove(folder_ / "pid", ignored);
    process_ = std::make_unique<server_process>(
        std::vector<std::string>{nginx_program(), "-p", folder_.path().string(), "-e", "error.log", "-c",
                                 "nginx.conf"},
        folder_.path(), folder_ / "output");
    // nginx writes its number once it listens.
    if (!wait_until_ready(*process_, [&] { return std::filesystem::exists(folder_ / "pid"); })) {
      const std::string why = process_->output() + text_in(folder_ / "error.log");
      process_.reset();
      throw std::runtime_error("nginx does not start: " + why);
    }
  }
  /// Lets it hang, with its connections open, and go on.
  void pause() { process_->pause(); }
  void resume() { process_->resume(); }

  /// The requests that have ended, in this order: those whose answer a client has received are among them.
  [[nodiscard]] std::vector<logged_request> requests() const {
    // nginx has one thread and logs a request before it takes the next event, so after an answer to this one
    // the log has all that were answered before.
    if (process_ && process_->running())
      (void)plain_client(port_).get("/penstock-log", "Connection: close\r\n");
    std::vector<logged_request> found;
    std::istringstream log(text_in(folder_ / "access.log"));
    for (std::string line; std::getline(log, line);) found.push_back(parsed(line));
    return found;
  }
  /// Forgets the requests so far.
  void clear_requests() {
    (void)requests();
    std::filesystem::resize_file(folder_ / "access.log", 0);
  }
  /// What nginx complains of.
  [[nodiscard]] std::string complaints() const { return text_in(folder_ / "error.log"); }

 private:
  void choose_ports() {
    port_ = free_port();
    for (const certificate kind : kinds_) tls_ports_[kind] = free_port();
  }

  void write_configuration() const {
    std::ofstream file(folder_ / "nginx.conf");
    file << "daemon off;\nmaster_process off;\npid pid;\nerror_log error.log;\n"
            "events { worker_connections 1024; }\n"
            "http {\n"
            "default_type application/octet-stream;\n"
            "keepalive_requests 1000000;\n"
            "sendfile on;\ntcp_nodelay on;\n";
    for (const char* const kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
      file << kind << "_temp_path temporary/" << kind << ";\n";
    file
        << "log_format test '$request_method\\t$request_uri\\t$status\\t$http_range\\t$http_if_match\\t"
           "$http_if_range\\t$http_host\\t$http_user_agent\\t$remote_user\\t$body_bytes_sent\\t$connection\\t"
           "$connection_requests\\t$scheme\\t$remote_addr';\n"
           "access_log access.log test;\n"
           "ssl_session_cache none;\n";
    server_block(file, port_, nullptr);
    for (const certificate kind : kinds_) server_block(file, tls_ports_.at(kind), &kind);
    file << "}\n";
  }

  void server_block(std::ostream& file, std::uint16_t port, const certificate* kind) const {
    const std::string how = kind == nullptr ? ";\n" : " ssl;\n";
    file << "server {\nlisten 127.0.0.1:" << port << how;
    if (have_ipv6()) file << "listen [::1]:" << port << how;
    if (kind != nullptr)
      file << "ssl_certificate " << name_of(*kind) << ".pem;\nssl_certificate_key " << name_of(*kind)
           << ".key;\n";
    locations(file);
    file << "}\n";
  }
  void locations(std::ostream& file) const {
    const std::string served = root().string() + "/";
    const auto serve = [&](const std::string& path, const std::string& how) {
      file << "location /" << path << " { alias " << served << "; " << how << " }\n";
    };
    file << lines_ << "\nlocation = /penstock-log { access_log off; return 204; }\n";
    serve("", "");
    serve("no-ranges/", "max_ranges 0;");
    serve("private/", "auth_basic tests; auth_basic_user_file users;");
    serve("slow/", "limit_rate 20k;");
    const auto redirect = [&](const std::string& path, int status, const std::string& to) {
      file << "location ~ ^/" << path << "/(.*)$ { return " << status << " " << to << "/$1$is_args$args; }\n";
    };
    for (const int status : {301, 302, 303, 307, 308})
      redirect("redirect/" + std::to_string(status), status, "$scheme://$http_host");
    file << "location ~ ^/relative/(.*)$ { absolute_redirect off; return 302 /$1$is_args$args; }\n";
    redirect("far", 302, "http://localhost:" + std::to_string(port_));
    redirect("plain", 302, "http://127.0.0.1:" + std::to_string(port_));
    if (!kinds_.empty())
      redirect("secure", 302, "https://localhost:" + std::to_string(tls_ports_.at(kinds_[0])));
    file << "location = /loop { return 302 /loop; }\n"
            "location = /ping { return 302 /pong; }\n"
            "location = /pong { return 302 /ping; }\n"
            "location /drop { return 444; }\n";
    for (const int status : {400, 401, 403, 404, 500, 502, 504})
      file << "location /status/" << status << " { return " << status << "; }\n";
    for (const int status : {429, 503})
      file << "location /status/" << status << " { add_header Retry-After 1 always; return " << status
           << "; }\n";
  }

  [[nodiscard]] static logged_request parsed(const std::string& line) {
    std::vector<std::string> parts;
    std::istringstream text(line);
    for (std::string one; std::getline(text, one, '\t');) parts.push_back(one == "-" ? "" : one);
    if (parts.size() != 14) throw std::runtime_error("a line of nginx's log: " + line);
    logged_request made;
    made.method = parts[0], made.target = parts[1], made.range = parts[3], made.if_match = parts[4];
    made.if_range = parts[5], made.host = parts[6], made.user_agent = parts[7], made.user = parts[8];
    made.status = std::stoi(parts[2]);
    made.body_bytes = std::stoull(parts[9]), made.connection = std::stoull(parts[10]);
    made.ordinal = std::stoull(parts[11]);
    made.tls = parts[12] == "https", made.v6 = parts[13] == "::1";
    return made;
  }

  temp_dir folder_;
  std::string lines_;
  std::vector<certificate> kinds_;
  std::optional<test_authority> authority_;
  std::uint16_t port_ = 0;
  std::map<certificate, std::uint16_t> tls_ports_;
  std::unique_ptr<server_process> process_;
};

}  // namespace penstock_test
