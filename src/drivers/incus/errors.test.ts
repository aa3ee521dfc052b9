import { describe, expect, it } from 'vitest';
import { classify, IncusRefusal, isNotFound, NotReached, toFailure } from './errors.ts';

/**
 * Texts of requests and of operations that failed. Most are replies of Incus 6.0.4. Those about quotas, disk space, GPUs, virtual
 * machines and an offline member were not recorded: they are written from what Incus documents.
 */
const replies: readonly [status: number, message: string, code: string][] = [
  [404, 'Instance not found', 'gone'],
  [404, 'Storage volume not found', 'gone'],
  [404, 'Failed getting image: Image not found', 'image_missing'],
  [
    400,
    'Failed getting image: Failed to fetch image alias "nothing": Image alias not found',
    'image_missing',
  ],
  [409, 'Volume by that name already exists', 'conflict'],
  [400, 'Instance "berth-a" already exists', 'conflict'],
  [400, 'The instance is already running', 'conflict'],
  [400, 'The instance is already stopped', 'conflict'],
  [
    400,
    'Failed to create instance update operation: Instance is busy running a "stop" operation',
    'conflict',
  ],
  [
    412,
    "ETag doesn't match: 63c3ccdca69fae82cf3cf38da008e4869c683357769e02ed59cb61a22cb708f6 vs 8a93f9d0",
    'conflict',
  ],
  [403, 'not authorized', 'auth'],
  [403, 'User does not have entitlement "can_edit" on object "project:default"', 'auth'],
  [
    403,
    'Failed checking if instance creation allowed: Reached maximum number of instances in project "p"',
    'quota',
  ],
  [
    403,
    'Failed checking if instance creation allowed: Reached maximum aggregate value "2" for "limits.cpu" in project "p"',
    'quota',
  ],
  [500, 'Failed creating instance from image: write /x: no space left on device', 'capacity'],
  [400, 'Failed unpacking image: write /x: disk quota exceeded', 'capacity'],
  [400, 'Instance type "virtual-machine" is not supported on this server', 'unsupported'],
  [500, "Server isn't ready yet", 'transient'],
  [500, 'Invalid PID \ufffd', 'transient'],
  [500, 'Failed to begin transaction: context deadline exceeded', 'transient'],
  [503, 'Cluster member "n3" is offline', 'transient'],
  [
    400,
    'Failed to start device "gpu0": Failed to override IOMMU group driver: device in use',
    'device_fault',
  ],
  [400, 'Invalid devices: Device validation failed for "eth0": Network not found', 'invalid'],
  [500, 'something that nobody has seen', 'internal'],
];

describe('a reply of Incus', () => {
  it.each(replies)('%i %s is %s', (status, message, code) => {
    expect(classify({ status, message })).toBe(code);
  });

  it('of a code that says that nothing was begun has no side effect; any other may have one', () => {
    const effectOf = (status: number, message: string): unknown => {
      const step = toFailure(new IncusRefusal(status, message, 'POST'));
      return step.outcome === 'failed' && step.sideEffect;
    };
    expect(effectOf(400, 'Invalid devices')).toBe('none');
    expect(effectOf(500, 'no space left on device')).toBe('possible');
    expect(effectOf(503, 'try later')).toBe('possible');
  });

  it('proves that something is gone only where its project is there', () => {
    expect(isNotFound(new IncusRefusal(404, 'Instance not found', 'GET'))).toBe(true);
    expect(isNotFound(new IncusRefusal(404, 'Project not found', 'GET'))).toBe(false);
  });

  it('that never came is transient where nothing was sent, and is thrown for the core to doubt otherwise', () => {
    expect(toFailure(new NotReached('nobody there'))).toMatchObject({
      code: 'transient',
      sideEffect: 'none',
    });
    expect(() => toFailure(new Error('the answer was lost'))).toThrow('the answer was lost');
  });
});
