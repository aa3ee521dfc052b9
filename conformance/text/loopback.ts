/** Whether the `hostname` of a `URL` is this machine. A `URL` normalises IP addresses. */
export function isLoopback(hostname: string): boolean {
  return /^((.*\.)?localhost\.?|127(\.\d{1,3}){3}|\[::1\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\])$/.test(
    hostname,
  );
}
