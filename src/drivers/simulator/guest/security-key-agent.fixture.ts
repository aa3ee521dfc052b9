import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';

const APPLICATION = 'ssh:';
const IDENTITIES_REQUEST = 11;
const IDENTITIES_ANSWER = 12;
const SIGN_REQUEST = 13;
const SIGN_RESPONSE = 14;
const AGENT_FAILURE = 5;

/** A software security key that signs like the hardware (OpenSSH PROTOCOL.u2f). */
export class SoftwareSecurityKey {
  readonly type: 'sk-ssh-ed25519@openssh.com' | 'sk-ecdsa-sha2-nistp256@openssh.com';
  readonly blob: Buffer;
  /** Sent with each signature; bit 0: the user was present. */
  flags = 1;
  #counter = 0;
  readonly #privateKey: KeyObject;

  constructor(type: SoftwareSecurityKey['type']) {
    this.type = type;
    const isEd25519 = type === 'sk-ssh-ed25519@openssh.com';
    const pair = isEd25519
      ? generateKeyPairSync('ed25519')
      : generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#privateKey = pair.privateKey;
    const { x = '', y = '' } = pair.publicKey.export({ format: 'jwk' });
    const coordinates = [x, y].map((coordinate) => Buffer.from(coordinate, 'base64url'));
    const fields = isEd25519
      ? [coordinates[0] ?? Buffer.alloc(0)]
      : [Buffer.from('nistp256'), Buffer.concat([Buffer.from([4]), ...coordinates])];
    this.blob = Buffer.concat([Buffer.from(type), ...fields, Buffer.from(APPLICATION)].map(sshString));
  }

  get line(): string {
    return `${this.type} ${this.blob.toString('base64')}`;
  }

  /** The inner signature, and the trailer with flags and counter. */
  sign(message: Buffer): { inner: Buffer; trailer: Buffer } {
    const trailer = Buffer.alloc(5);
    trailer.writeUInt8(this.flags);
    trailer.writeUInt32BE(++this.#counter, 1);
    const signed = Buffer.concat([sha256(Buffer.from(APPLICATION)), trailer, sha256(message)]);
    if (this.type === 'sk-ssh-ed25519@openssh.com')
      return { inner: sign(null, signed, this.#privateKey), trailer };
    const raw = sign('sha256', signed, { key: this.#privateKey, dsaEncoding: 'ieee-p1363' });
    return {
      inner: Buffer.concat([raw.subarray(0, 32), raw.subarray(32)].map((half) => sshString(toMpint(half)))),
      trailer,
    };
  }
}

/** Starts an ssh-agent with one security key, at the socket `path`. */
export async function startAgent(key: SoftwareSecurityKey, path: string): Promise<Server> {
  const server = createServer((socket) => serve(socket, key));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return server;
}

function serve(socket: Socket, key: SoftwareSecurityKey): void {
  let buffered = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    buffered = Buffer.concat([buffered, chunk]);
    while (buffered.length >= 4 && buffered.length >= 4 + buffered.readUInt32BE(0)) {
      const length = buffered.readUInt32BE(0);
      socket.write(sshString(answer(buffered.subarray(4, 4 + length), key)));
      buffered = buffered.subarray(4 + length);
    }
  });
}

function answer(request: Buffer, key: SoftwareSecurityKey): Buffer {
  if (request[0] === IDENTITIES_REQUEST) {
    const count = Buffer.from([0, 0, 0, 1]);
    return Buffer.concat([
      Buffer.from([IDENTITIES_ANSWER]),
      count,
      sshString(key.blob),
      sshString(Buffer.from('key')),
    ]);
  }
  if (request[0] !== SIGN_REQUEST) return Buffer.from([AGENT_FAILURE]);
  const dataAt = 1 + 4 + request.readUInt32BE(1);
  const data = request.subarray(dataAt + 4, dataAt + 4 + request.readUInt32BE(dataAt));
  const { inner, trailer } = key.sign(data);
  const signature = Buffer.concat([sshString(Buffer.from(key.type)), sshString(inner), trailer]);
  return Buffer.concat([Buffer.from([SIGN_RESPONSE]), sshString(signature)]);
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}

/** Encodes a string as in RFC 4251 §5. */
function sshString(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** Encodes an unsigned number as an mpint of RFC 4251 §5. */
function toMpint(digits: Buffer): Buffer {
  const significant = digits.subarray(
    Math.max(
      0,
      digits.findIndex((byte) => byte !== 0),
    ),
  );
  return (significant[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.from([0]), significant]) : significant;
}
