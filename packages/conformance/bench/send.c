// What the system itself can do: one thread, poll() and send(). A POST's body is sent to every stream, a GET becomes
// one. Requests are taken to come in one piece, as those of the benchmark do.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS_MAX 20000

static struct pollfd fds[CONNECTIONS_MAX];
static char is_stream[CONNECTIONS_MAX];
static char input[1 << 20], frame[(1 << 20) + 64];

static const char head[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\n{\"first_pos\":1,\"last_pos\":1}";

int main(void) {
  int door = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  if (bind(door, (struct sockaddr *)&at, size) < 0 || listen(door, 4096) < 0) return 1;
  getsockname(door, (struct sockaddr *)&at, &size);
  printf("send listening on http://127.0.0.1:%d\n", ntohs(at.sin_port));
  fflush(stdout);
  fds[0] = (struct pollfd){door, POLLIN, 0};
  int count = 1;
  for (;;) {
    poll(fds, count, -1);
    if (fds[0].revents && count < CONNECTIONS_MAX) {
      int client = accept(door, NULL, NULL);
      setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      is_stream[count] = 0;
      fds[count++] = (struct pollfd){client, POLLIN, 0};
    }
    for (int i = 1; i < count; i++) {
      if (!fds[i].revents) continue;
      ssize_t bytes = recv(fds[i].fd, input, sizeof input - 1, 0);
      if (bytes <= 0) {
        close(fds[i].fd);
        count--;
        fds[i] = fds[count];
        is_stream[i] = is_stream[count];
        i--;
        continue;
      }
      input[bytes] = 0;
      if (input[0] == 'G') {
        is_stream[i] = 1;
        send(fds[i].fd, head, sizeof head - 1, MSG_NOSIGNAL);
        continue;
      }
      char *body = strstr(input, "\r\n\r\n");
      if (body == NULL) return 1;
      body += 4;
      size_t length = bytes - (body - input);
      int framed = sprintf(frame, "%zx\r\ndata: ", length + 8);
      memcpy(frame + framed, body, length);
      memcpy(frame + framed + length, "\n\n\r\n", 4);
      for (int j = 1; j < count; j++)
        if (is_stream[j]) send(fds[j].fd, frame, framed + length + 4, MSG_NOSIGNAL);
      send(fds[i].fd, answer, sizeof answer - 1, MSG_NOSIGNAL);
    }
  }
}
