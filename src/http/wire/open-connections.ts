import { BlockList, isIPv6, type Socket } from 'node:net';
import { clientOf } from './client-address.ts';
import type { Connection } from './connection.ts';

/** A TCP connection; `connection` is there once HTTP can be spoken on it, after the handshake of TLS. */
export interface OpenConnection {
  readonly socket: Socket;
  readonly address: string;
  /** Tells it from all others that are open. */
  readonly peer: string;
  connection?: Connection;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** All connections of a server, and how many one address has. */
export class OpenConnections implements Iterable<OpenConnection> {
  readonly #perAddress: number;
  readonly #byPeer = new Map<string, OpenConnection>();
  /** The oldest first. */
  readonly #byAddress = new Map<string, Set<OpenConnection>>();

  /** `perAddress`: how many one address may have; loopback may have any number. */
  constructor(perAddress: number) {
    this.#perAddress = perAddress;
  }

  /**
   * Takes a connection in. Where its address has as many as it may, the oldest on which nothing is owed makes room;
   * false: all are in use.
   */
  admit(socket: Socket): boolean {
    const { remoteAddress } = socket;
    // It went away before it was looked at.
    if (remoteAddress === undefined) return false;
    const { network: address } = clientOf(remoteAddress, undefined, 0);
    const opened: OpenConnection = { socket, address, peer: peerOf(socket) };
    const ofAddress = this.#byAddress.get(address) ?? new Set();
    if (!isLoopback(remoteAddress) && ofAddress.size >= this.#perAddress) {
      const idle = [...ofAddress].find(({ connection }) => connection?.isIdle ?? true);
      if (idle === undefined) return false;
      this.#remove(idle);
      idle.socket.destroy();
    }
    this.#byAddress.set(address, ofAddress.add(opened));
    this.#byPeer.set(opened.peer, opened);
    socket.once('close', () => this.#remove(opened));
    return true;
  }

  /** HTTP can be spoken on it now. */
  attach(connection: Connection): void {
    const opened = this.#byPeer.get(peerOf(connection.socket));
    if (opened !== undefined) opened.connection = connection;
  }

  [Symbol.iterator](): Iterator<OpenConnection> {
    return this.#byPeer.values();
  }

  #remove(opened: OpenConnection): void {
    const ofAddress = this.#byAddress.get(opened.address);
    if (ofAddress?.delete(opened) && ofAddress.size === 0) this.#byAddress.delete(opened.address);
    if (this.#byPeer.get(opened.peer) === opened) this.#byPeer.delete(opened.peer);
  }
}

function isLoopback(address: string): boolean {
  return loopback.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
