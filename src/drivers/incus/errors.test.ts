import { describe, expect, it } from 'vitest';
import { NotReached } from '../../ports/errors.ts';
import { classify, IncusRefusal, isNotFound, toFailure } from './errors.ts';

/**
 * Messages of failed requests and operations. Most were recorded from Incus 6.0.4. Those about quotas, disk space,
 * GPUs, virtual machines and an offline member are taken from its source.
 */
const replies: readonly [status: number, message: string, code: string][] = [
  // From a cluster, and from a single daemon.
  [404, 'Instance not found', 'gone'],
  [404, 'Failed to fetch instance "berth-a" in project "default": Instance not found', 'gone'],
  // Names chosen by operators and tenants do not affect the code.
  [404, 'Failed to fetch instance "gpu" in project "image": Instance not found', 'gone'],
  [404, 'Failed to fetch instance "berth-a" in project "in progress": Instance not found', 'gone'],
  [500, 'Failed creating instance record: Failed starting "gpu" in pool "no space left"', 'internal'],
  [500, 'mkdir /var/lib/incus/storage-pools/gpu/containers/berth-a: permission denied', 'internal'],
  [
    500,
    'Cannot retrieve PCI device ID: open /sys/bus/pci/devices/0000:3b:00.0: no such file',
    'device_fault',
  ],
  // Resources that a request names besides its instance.
  [
    400,
    'Failed creating instance record: Failed initializing instance: Failed loading storage pool: Storage pool not found',
    'invalid',
  ],
  [
    400,
    'Failed creating instance record: Failed initializing instance: Invalid devices: Device validation failed for "eth0": Failed loading device "eth0": Failed to load network "image" for project "gpu": Network not found',
    'invalid',
  ],
  [500, 'Requested profile "image" doesn\'t exist', 'invalid'],
  [400, 'Target only allowed when clustered', 'invalid'],
  [404, 'Check if project has images: fetch project: Project not found', 'invalid'],
  [404, 'Failed loading project: Project not found', 'invalid'],
  [404, 'Profile not found', 'invalid'],
  [400, 'Not enough uid/gid available for the container', 'capacity'],
  [404, 'Storage volume not found', 'gone'],
  [404, 'Failed getting image: Image not found', 'image_missing'],
  [
    400,
    'Failed getting image: Failed to fetch image alias "nothing": Image alias not found',
    'image_missing',
  ],
  [400, 'Image not provided for instance creation', 'image_missing'],
  [400, 'Instance is running', 'conflict'],
  [400, "The instance isn't running", 'conflict'],
  [400, 'The container is already frozen', 'conflict'],
  [400, 'Failed shutting down instance, status is "Running": context deadline exceeded', 'transient'],
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
  [500, 'an unknown message', 'internal'],
];

describe('an error reply of Incus', () => {
  it.each(replies)('%i %s is %s', (status, message, code) => {
    expect(classify({ status, message })).toBe(code);
  });

  it('has no side effect if its code proves that nothing was started; any other may have one', () => {
    const effectOf = (status: number, message: string): unknown => {
      const step = toFailure(new IncusRefusal(status, message, 'POST'));
      return step.outcome === 'failed' && step.sideEffect;
    };
    expect(effectOf(400, 'Invalid devices')).toBe('none');
    expect(effectOf(500, 'no space left on device')).toBe('possible');
    expect(effectOf(503, 'try later')).toBe('possible');
  });

  it.each([
    [404, true],
    [400, false],
    [500, false],
  ])('%i says by its status alone whether something was not found: %s', (status, expected) => {
    const message = 'Failed to fetch instance "x" in project "default": Instance not found';
    expect(isNotFound(new IncusRefusal(status, message, 'GET'))).toBe(expected);
  });

  it('that never arrives is transient if nothing was sent; otherwise it is thrown, and the outcome is unknown', () => {
    expect(toFailure(new NotReached('connection refused'))).toMatchObject({
      code: 'transient',
      sideEffect: 'none',
    });
    expect(() => toFailure(new Error('the answer was lost'))).toThrow('the answer was lost');
  });
});
