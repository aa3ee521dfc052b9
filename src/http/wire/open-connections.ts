import { BlockList, isIPv6, type Socket } from 'node:net';
import { clientOf } from './client-address.ts';
import type { Connection } from './connection.ts';

/** A TCP connection. `connection` is set once it speaks HTTP, after the TLS handshake. */
export interface OpenConnection {
  readonly socket: Socket;
  readonly address: string;
  /** Unique among the open connections. */
  readonly peer: string;
  connection?: Connection;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** All connections of a server, with a limit for each address. */
export class OpenConnections implements Iterable<OpenConnection> {
  readonly #perAddress: number;
  readonly #byPeer = new Map<string, OpenConnection>();
  /** Connections of each address, oldest first. */
  readonly #byAddress = new Map<string, Set<OpenConnection>>();

  /** `perAddress`: maximum connections of one address. Loopback has no limit. */
  constructor(perAddress: number) {
    this.#perAddress = perAddress;
  }

  /**
   * Admits a connection. At the limit of its address, the oldest connection without a pending reply is closed. Returns
   * false if all are busy.
   */
  admit(socket: Socket): boolean {
    const { remoteAddress } = socket;
    // The socket closed before it was admitted.
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

  /** Records that the connection now speaks HTTP. */
  attach(connection: Connection): void {
    const opened = this.#byPeer.get(peerOf(connection.socket));
    if (opened !== undefined) opened.connection = connection;
  }

  /** Returns the socket that was admitted for a connection: that below its TLS, if it has any. */
  tcpSocketOf(socket: Socket): Socket {
    return this.#byPeer.get(peerOf(socket))?.socket ?? socket;
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
