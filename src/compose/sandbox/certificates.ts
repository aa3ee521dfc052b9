import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP } from 'node:net';
import { groupsOf } from '../../http/wire/client-address.ts';
import { DAY_MS } from '../../ports/clock.ts';

/** A certificate and its key, in PEM. */
export interface Certificate {
  cert: Buffer;
  key: Buffer;
}

export interface Certificates {
  /** The certificate of the CA, in PEM. A client that trusts it accepts `valid`, and refuses the others. */
  ca: string;
  valid: Certificate;
  expired: Certificate;
  'wrong-name': Certificate;
}

/** Makes a CA and certificates of a server with these names. `now` is the real time, by which clients judge them. */
export function createCertificates(names: readonly string[], now: number): Certificates {
  const ca: Issuer = { name: 'Berth sandbox CA', ...newKeys() };
  const server = newKeys();
  const key = Buffer.from(server.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const soon = now + 365 * DAY_MS;
  const issue = (validity: Validity, altNames: readonly string[]): Certificate => {
    const extensions = [
      extension(KEY_USAGE, DIGITAL_SIGNATURE, 'critical'),
      extension(EXTENDED_KEY_USAGE, sequence(SERVER_AUTHENTICATION)),
      extension(AUTHORITY_KEY_ID, sequence(der(KEY_ID, keyIdOf(ca.publicKey)))),
      extension(SUBJECT_ALT_NAME, sequence(...altNames.map(generalName))),
    ];
    const subject = { name: 'Berth sandbox', publicKey: server.publicKey };
    return { key, cert: Buffer.from(certificate(ca, subject, validity, extensions)) };
  };
  const ofCa = [
    extension(BASIC_CONSTRAINTS, sequence(der(BOOLEAN, Buffer.from([0xff]))), 'critical'),
    extension(KEY_USAGE, CERTIFICATE_SIGNATURE, 'critical'),
    extension(SUBJECT_KEY_ID, der(OCTET_STRING, keyIdOf(ca.publicKey))),
  ];
  return {
    ca: certificate(ca, ca, [now - 60 * DAY_MS, soon], ofCa),
    valid: issue([now - DAY_MS, soon], names),
    expired: issue([now - 30 * DAY_MS, now - DAY_MS], names),
    'wrong-name': issue([now - DAY_MS, soon], ['another-name.example']),
  };
}

interface Subject {
  name: string;
  publicKey: KeyObject;
}
type Issuer = Subject & { privateKey: KeyObject };
/** In milliseconds since the Unix epoch, before 2050. */
type Validity = readonly [from: number, until: number];

const newKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

// Node signs and reads certificates, but cannot write them. The fields are those of RFC 5280.
const BOOLEAN = 0x01;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OBJECT_ID = 0x06;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const SEQUENCE = 0x30;
const SET = 0x31;
/** Tags that depend on where they are. */
const VERSION = 0xa0;
const EXTENSIONS = 0xa3;
const KEY_ID = 0x80;
const DNS_NAME = 0x82;
const IP_ADDRESS = 0x87;

/** Encodes a value, shorter than 64 KiB, by DER (X.690). */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const prefix = length < 0x80 ? [] : length < 0x100 ? [0x81] : [0x82, length >> 8];
  return Buffer.concat([Buffer.from([tag, ...prefix, length & 0xff]), value]);
}

const sequence = (...parts: readonly Uint8Array[]): Buffer => der(SEQUENCE, ...parts);
const objectId = (hex: string): Buffer => der(OBJECT_ID, Buffer.from(hex, 'hex'));
/** A bit string begins with the number of its unused bits. */
const bits = (unused: number, ...value: readonly Uint8Array[]): Buffer =>
  der(BIT_STRING, Buffer.from([unused]), ...value);

const ECDSA_WITH_SHA256 = sequence(objectId('2a8648ce3d040302'));
const COMMON_NAME = objectId('550403');
const SUBJECT_KEY_ID = objectId('551d0e');
const KEY_USAGE = objectId('551d0f');
const SUBJECT_ALT_NAME = objectId('551d11');
const BASIC_CONSTRAINTS = objectId('551d13');
const AUTHORITY_KEY_ID = objectId('551d23');
const EXTENDED_KEY_USAGE = objectId('551d25');
const SERVER_AUTHENTICATION = objectId('2b06010505070301');
const DIGITAL_SIGNATURE = bits(7, Buffer.from([0x80]));
const CERTIFICATE_SIGNATURE = bits(2, Buffer.from([0x04]));

/** Returns a certificate of X.509 version 3 (RFC 5280), in PEM. */
function certificate(
  issuer: Issuer,
  { name, publicKey }: Subject,
  validity: Validity,
  extensions: readonly Buffer[],
): string {
  // A serial number is positive.
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(15)]);
  const body = sequence(
    der(VERSION, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, serial),
    ECDSA_WITH_SHA256,
    commonName(issuer.name),
    sequence(...validity.map(utcTime)),
    commonName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(EXTENSIONS, sequence(...extensions)),
  );
  const signature = sign('sha256', body, issuer.privateKey);
  const lines = sequence(body, ECDSA_WITH_SHA256, bits(0, signature))
    .toString('base64')
    .match(/.{1,64}/g);
  return ['-----BEGIN CERTIFICATE-----', ...(lines ?? []), '-----END CERTIFICATE-----', ''].join('\n');
}

function commonName(name: string): Buffer {
  return sequence(der(SET, sequence(COMMON_NAME, der(UTF8_STRING, Buffer.from(name)))));
}

/** Such as `261127120000Z`. */
function utcTime(at: number): Buffer {
  const digits = new Date(at).toISOString().replace(/\D/g, '').slice(2, 14);
  return der(UTC_TIME, Buffer.from(`${digits}Z`));
}

function extension(id: Buffer, value: Buffer, critical?: 'critical'): Buffer {
  const flag = critical === undefined ? [] : [der(BOOLEAN, Buffer.from([0xff]))];
  return sequence(id, ...flag, der(OCTET_STRING, value));
}

function generalName(name: string): Buffer {
  if (isIP(name) === 0) return der(DNS_NAME, Buffer.from(name));
  const bytes =
    isIP(name) === 4
      ? name.split('.').map(Number)
      : groupsOf(name).flatMap((group) => [group >> 8, group & 0xff]);
  return der(IP_ADDRESS, Buffer.from(bytes));
}

function keyIdOf(publicKey: KeyObject): Buffer {
  return createHash('sha1')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest();
}
