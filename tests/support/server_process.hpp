// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace penstock_test {

/// A file as text; empty if it cannot be read.
[[nodiscard]] inline std::string text_in(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

/// A program that runs beside the test until it is stopped: a server. It runs in a process group of its own;
/// stopping it ends the whole group, and it is killed if the test program dies.
///
///     server_process server({"nginx", "-c", "nginx.conf"}, folder, folder / "output");
///     server.stop();
///
/// In: the program, found by PATH, with its arguments; the folder in which it runs; the file to which its
/// output is appended; further variables of its environment, as NAME=value.
/// Throws std::runtime_error if it cannot be started. Threads: any may call.
class server_process {
 public:
  server_process(std::vector<std::string> command, std::filesystem::path folder, std::filesystem::path output,
                 std::vector<std::string> environment = {})
      : command_(std::move(command)), folder_(std::move(folder)), output_(std::move(output)) {
    environment_ = std::move(environment);  // first: getenv takes the first of a name
    const std::size_t own = environment_.size();
    for (char** one = ::environ; *one != nullptr; ++one) {
      const std::string_view line = *one, name = line.substr(0, line.find('=') + 1);
      const auto end = environment_.begin() + static_cast<std::ptrdiff_t>(own);
      if (std::none_of(environment_.begin(), end,
                       [&](const std::string& mine) { return mine.starts_with(name); }))
        environment_.emplace_back(line);
    }
    // The system kills the child when the thread that forked it ends, so that
    // is a thread of our own.
    credential_cache_ = std::thread([this] { keep(); });
    std::unique_lock held(lock_);
    changed_.wait(held, [this] { return started_; });
    if (failed_ == 0) return;
    held.unlock();
    credential_cache_.join();
    throw std::runtime_error("cannot start " + command_[0] + ": " + std::generic_category().message(failed_));
  }
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;
  ~server_process() {
    stop();
    credential_cache_.join();
  }

  [[nodiscard]] bool running() {
    const std::scoped_lock held(lock_);
    return !ended_;
  }
  /// Asks it to end, kills it if it does not, and waits.
  void stop(std::chrono::milliseconds timeout = std::chrono::seconds(3)) {
    std::unique_lock held(lock_);
    if (!ended_) ::kill(-child_, SIGTERM);
    if (changed_.wait_for(held, timeout, [this] { return ended_; })) return;
    ::kill(-child_, SIGKILL);
    changed_.wait(held, [this] { return ended_; });
  }
  /// Kills it, as the end of its machine would, and waits.
  void kill() {
    std::unique_lock held(lock_);
    if (!ended_) ::kill(-child_, SIGKILL);
    changed_.wait(held, [this] { return ended_; });
  }
  /// Stops its progress without ending it, and lets it go on; its connections stay open.
  void pause() { send(SIGSTOP); }
  void resume() { send(SIGCONT); }

  [[nodiscard]] std::string output() const { return text_in(output_); }

 private:
  void send(int signal) {
    const std::scoped_lock held(lock_);
    if (!ended_) ::kill(-child_, signal);
  }

  void keep() {
    const int failed = begin();
    {
      const std::scoped_lock held(lock_);
      started_ = true;
      failed_ = failed;
      ended_ = failed != 0;
    }
    changed_.notify_all();
    if (failed != 0) return;
    siginfo_t ignored{};
    while (::waitid(P_PID, static_cast<id_t>(child_), &ignored, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    {
      const std::scoped_lock held(lock_);
      ::kill(-child_, SIGKILL);  // what it started; its number is still taken
      ::waitpid(child_, nullptr, 0);
      ended_ = true;
    }
    changed_.notify_all();
  }

  /// Starts the program; 0, or why it cannot be started.
  int begin() {
    const auto pointers = [](std::vector<std::string>& texts) {
      std::vector<char*> list;
      for (std::string& one : texts) list.push_back(one.data());
      list.push_back(nullptr);
      return list;
    };
    const std::vector<char*> arguments = pointers(command_), environment = pointers(environment_);
    int channel[2];  // is closed by exec, or says why it failed
    if (::pipe2(channel, O_CLOEXEC) != 0) return errno;
    const pid_t parent = ::getpid();
    child_ = ::fork();
    if (child_ == 0) {
      ::setsid();
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      const int out = ::open(output_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
      if (nothing >= 0 && out >= 0 && ::dup2(nothing, 0) == 0 && ::dup2(out, 1) == 1 && ::dup2(out, 2) == 2 &&
          ::chdir(folder_.c_str()) == 0)
        ::execvpe(arguments[0], arguments.data(), environment.data());
      const int code = errno;
      const auto written = ::write(channel[1], &code, sizeof code);
      ::_exit(written == sizeof code ? 1 : 2);
    }
    const int not_forked = child_ < 0 ? errno : 0;
    ::close(channel[1]);
    int code = 0;
    const bool told = child_ > 0 && ::read(channel[0], &code, sizeof code) == sizeof code;
    ::close(channel[0]);
    if (told) ::waitpid(child_, nullptr, 0);
    return not_forked != 0 ? not_forked : told ? code : 0;
  }

  std::vector<std::string> command_, environment_;
  std::filesystem::path folder_, output_;
  std::mutex lock_;
  std::condition_variable changed_;
  pid_t child_ = -1;
  int failed_ = 0;
  bool started_ = false, ended_ = false;
  std::thread credential_cache_;
};

/// Waits until `ready` says yes; false if the server ends before, or the time is over.
template <class Ready>
[[nodiscard]] bool wait_until_ready(server_process& server, Ready ready,
                                    std::chrono::seconds limit = std::chrono::seconds(60)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!ready()) {
    if (!server.running() || std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace penstock_test
