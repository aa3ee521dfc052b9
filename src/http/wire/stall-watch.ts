import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { endianness } from 'node:os';
import { groupsOf } from './client-address.ts';
import type { OpenConnection } from './open-connections.ts';

/** Checks without progress before a stalled connection is ended. */
const CHECKS = 10;
const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];

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

/** A string that changes with every byte that the kernel or the client takes. */
function stateOf({ socket, connection }: OpenConnection, unacknowledged: number | undefined): string {
  const { writableLength } = connection?.socket ?? socket;
  return [writableLength, socket.bytesWritten, unacknowledged].join(' ');
}

/**
 * The bytes of each connection of this machine that the kernel has taken and the peer has not acknowledged, by {@link
 * connectionKey}. Linux only; empty elsewhere.
 */
export async function readUnacknowledged(): Promise<ReadonlyMap<string, number>> {
  const bytes = new Map<string, number>();
  for (const table of TABLES) {
    const text = await readFile(table, 'latin1').catch(() => '');
    for (const line of text.split('\n').slice(1)) {
      // sl local_address rem_address st tx_queue:rx_queue …
      const [, local, remote, , queues] = line.trim().split(/\s+/);
      if (local === undefined || remote === undefined || queues === undefined) continue;
      bytes.set(`${local.split(':')[1]} ${remote}`, Number.parseInt(queues, 16));
    }
  }
  return bytes;
}

/** Returns a connection in the kernel's notation. Undefined if it is not open. */
export function connectionKey({ localPort, remoteAddress, remotePort }: Socket): string | undefined {
  if (localPort === undefined || remoteAddress === undefined || remotePort === undefined) return undefined;
  return `${toHex(localPort, 4)} ${addressWords(remoteAddress)}:${toHex(remotePort, 4)}`;
}

/** The address in 32-bit words, each in the byte order of this machine. */
function addressWords(address: string): string {
  const bytes = address.includes(':')
    ? groupsOf(address.replace(/%.*$/, '')).flatMap((group) => [group >> 8, group & 0xff])
    : address.split('.').map(Number);
  const words = Array.from({ length: bytes.length / 4 }, (_, index) => bytes.slice(4 * index, 4 * index + 4));
  const isLittle = endianness() === 'LE';
  return words
    .flatMap((word) => (isLittle ? word.toReversed() : word))
    .map((byte) => toHex(byte, 2))
    .join('');
}

function toHex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}
