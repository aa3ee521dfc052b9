import ssh2, { type AuthContext, type PublicKeyAuthContext } from 'ssh2';
import { verifySecurityKeySignature } from './security-key-signature.ts';

/**
 * Whether the client may go on with this key: for a query, that the key is one of `authorizedKeys`,
 * byte for byte; for a login, that its signature is right, too.
 */
export function isAuthorized(context: AuthContext, authorizedKeys: readonly string[]): boolean {
  if (context.method !== 'publickey') return false;
  const { algo, data } = context.key;
  const offered = `${algo} ${data.toString('base64')}`;
  const line = authorizedKeys.find((known) => known.split(/\s+/, 2).join(' ') === offered);
  if (line === undefined || isSha1(context)) return false;
  return context.signature === undefined || isSignedBy(line, context);
}

/** The plain `ssh-rsa` algorithm, which a current sshd refuses: ssh2 tells it by the missing hash. */
function isSha1(context: PublicKeyAuthContext): boolean {
  return context.key.algo === 'ssh-rsa' && context.hashAlgo === undefined;
}

function isSignedBy(line: string, context: PublicKeyAuthContext): boolean {
  const { signature, blob, key, hashAlgo } = context;
  if (signature === undefined || blob === undefined) return false;
  // ssh2 knows no security keys: it hands out their signature without the algorithm's name.
  if (key.algo.startsWith('sk-')) return verifySecurityKeySignature(key.data, blob, signature);
  const parsed = ssh2.utils.parseKey(line);
  return !(parsed instanceof Error) && parsed.verify(blob, signature, hashAlgo) === true;
}
