/** How much of a body is on its way to one client at a time. */
const SLICE_BYTES = 64 * 1024;

/**
 * A body that many clients are sent from one buffer: a slice at a time, the next when the last was drained. What a
 * client that reads slowly holds is one slice, and not a copy (TLS makes one of all that it is given).
 */
export function sharedBody(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let sent = 0;
  return new ReadableStream(
    {
      pull(controller) {
        controller.enqueue(bytes.subarray(sent, sent + SLICE_BYTES));
        sent += SLICE_BYTES;
        if (sent >= bytes.length) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}
