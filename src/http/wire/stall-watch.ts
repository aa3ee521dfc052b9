import type { Socket } from 'node:net';
import type { OpenConnection } from './open-connections.ts';
import { connectionKey, readUnacknowledged } from './unacknowledged.ts';

/** Checks without progress before a stalled connection is ended. */
const CHECKS = 3;

interface Parts {
  connections: Iterable<OpenConnection>;
  /** A reply with no byte drained for this time has stalled. */
  stallMs: number;
  onStalled: (opened: OpenConnection) => void;
}

/**
 * Ends connections whose reply has stalled, since their data stays in memory. A slow reader is not stalled: the kernel
 * takes more only when a third of its buffer, perhaps a megabyte, is free. So acknowledged bytes count as progress, if
 * the kernel reports them.
 */
export class StallWatch {
  readonly #parts: Parts;
  readonly #lastState = new WeakMap<OpenConnection, { state: string; times: number }>();
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  start(): void {
    const everyMs = this.#parts.stallMs / CHECKS;
    this.#timer = setTimeout(
      () => void this.#check().then(() => this.#timer && this.start()),
      everyMs,
    ).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #check(): Promise<void> {
    const waiting = [...this.#parts.connections].filter(hasUndrained);
    if (waiting.length === 0) return;
    const unacknowledged = await readUnacknowledged();
    for (const opened of waiting) {
      // The reply may have progressed during the await.
      if (!hasUndrained(opened)) continue;
      const state = stateOf(opened, unacknowledged.get(connectionKey(opened.socket) ?? ''));
      const lastState = this.#lastState.get(opened);
      const times = lastState?.state === state ? lastState.times + 1 : 0;
      this.#lastState.set(opened, { state, times });
      if (times >= CHECKS) this.#parts.onStalled(opened);
    }
  }
}

/** Whether the kernel has not taken all written bytes. */
function hasUndrained({ connection }: OpenConnection): boolean {
  return connection !== undefined && connection.socket.writableLength > 0;
}

/** A string that changes with every drained byte. */
function stateOf({ socket, connection }: OpenConnection, unacknowledged: number | undefined): string {
  const { writableLength } = (connection?.socket ?? socket) as Socket;
  return [writableLength, socket.bytesWritten, queueSize(socket), unacknowledged].join(' ');
}

/** The bytes that libuv still holds of a partial write. node:net checks the same before a timeout. */
function queueSize(socket: Socket): number | undefined {
  const { _handle: handle } = socket as Socket & { _handle?: { writeQueueSize?: number } | null };
  return handle?.writeQueueSize;
}
