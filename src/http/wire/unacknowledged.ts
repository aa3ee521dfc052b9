import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { endianness } from 'node:os';

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];

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

/** A connection in the kernel's notation. Undefined: it is not open. */
export function connectionKey({ localPort, remoteAddress, remotePort }: Socket): string | undefined {
  if (localPort === undefined || remoteAddress === undefined || remotePort === undefined) return undefined;
  return `${toHex(localPort, 4)} ${addressWords(remoteAddress)}:${toHex(remotePort, 4)}`;
}

/** The address in 32-bit words, each in the byte order of this machine. */
function addressWords(address: string): string {
  const bytes = address.includes(':') ? ipv6Bytes(address) : ipv4Bytes(address);
  const words: number[][] = [];
  for (let at = 0; at < bytes.length; at += 4) words.push(bytes.slice(at, at + 4));
  const isLittle = endianness() === 'LE';
  return words
    .flatMap((word) => (isLittle ? word.toReversed() : word))
    .map((byte) => toHex(byte, 2))
    .join('');
}

function ipv4Bytes(address: string): number[] {
  return address.split('.').map(Number);
}

function ipv6Bytes(address: string): number[] {
  const [head = '', tail] = address.replace(/%.*$/, '').split('::');
  const before = groupBytes(head);
  const after = groupBytes(tail ?? '');
  return [...before, ...new Array<number>(16 - before.length - after.length).fill(0), ...after];
}

function groupBytes(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return ipv4Bytes(group);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

function toHex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}
