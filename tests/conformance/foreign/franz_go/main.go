// franz-go, asked over JSON lines: one call per line of standard input, one answer per line of standard output.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	wait      = 15 * time.Second
	lineBytes = 64 << 20
)

// call holds the parameters of every call; each reads those that it knows.
type call struct {
	Call            string
	Topic           string
	Messages        []message
	Compression     string
	Acks            int
	Idempotent      bool
	RequestBytesMax int32 `json:"request_bytes_max"`
	Partition       int32
	Count           int
	Offset          int64
	TimestampMs     int64 `json:"timestamp_ms"`
	Partitions      int32
	Replicas        int16
	Configs         map[string]*string
	Total           int
	Before          int64
	Name            string
	Value           string
	Group           string
	Member          int
	Writer          int
	TransactionalID string `json:"transactional_id"`
	Output          string
	Commits         bool
}

// A nil slice is null; JSON carries bytes in base64.
type header struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

type message struct {
	Value       []byte
	Key         []byte
	Headers     []header
	TimestampMs *int64 `json:"timestamp_ms"`
	Partition   *int32
}

type stored struct {
	Partition   int32    `json:"partition"`
	Offset      int64    `json:"offset"`
	TimestampMs int64    `json:"timestamp_ms"`
	Key         []byte   `json:"key"`
	Value       []byte   `json:"value"`
	Headers     []header `json:"headers"`
}

type placed struct {
	Partition int32 `json:"partition"`
	Offset    int64 `json:"offset"`
}

type answer struct {
	Result  any    `json:"result"`
	Refused int16  `json:"refused,omitempty"`
	Message string `json:"message,omitempty"`
	Failed  string `json:"failed,omitempty"`
}

type driver struct {
	bootstrap string
	members   []*kgo.Client
	writers   []*kgo.Client
}

func main() {
	d := driver{bootstrap: os.Args[1]}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, lineBytes)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked call
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			out.Encode(answer{Failed: err.Error()})
			continue
		}
		out.Encode(d.answer(asked))
	}
}

func (d *driver) answer(asked call) answer {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	result, err := d.do(ctx, asked)
	var refusal *kerr.Error
	switch {
	case errors.As(err, &refusal):
		return answer{Refused: refusal.Code, Message: refusal.Error()}
	case err != nil:
		return answer{Failed: err.Error()}
	}
	return answer{Result: result}
}

func (d *driver) do(ctx context.Context, asked call) (any, error) {
	switch asked.Call {
	case "produce":
		return d.produce(ctx, asked)
	case "consume":
		return d.consume(ctx, asked)
	case "join":
		return d.join(asked)
	case "poll":
		return d.poll(ctx, asked)
	case "commit":
		return nil, d.members[asked.Member].CommitUncommittedOffsets(ctx)
	case "leave":
		d.members[asked.Member].Close()
		return nil, nil
	case "transactional":
		client, err := d.client(
			kgo.TransactionalID(asked.TransactionalID),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
		)
		d.writers = append(d.writers, client)
		return len(d.writers) - 1, err
	case "begin":
		return nil, d.writers[asked.Writer].BeginTransaction()
	case "write":
		value, err := base64.StdEncoding.DecodeString(asked.Value)
		if err != nil {
			return nil, err
		}
		record := &kgo.Record{Topic: asked.Topic, Value: value}
		return nil, d.writers[asked.Writer].ProduceSync(ctx, record).FirstErr()
	case "end":
		return nil, d.writers[asked.Writer].EndTransaction(ctx, kgo.TransactionEndTry(asked.Commits))
	case "copy":
		return nil, d.copy(ctx, asked)
	}
	return d.administer(ctx, asked)
}

// administer asks with a client of its own each time, for a client remembers topics for a while.
func (d *driver) administer(ctx context.Context, asked call) (any, error) {
	client, err := d.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	switch asked.Call {
	case "offset_for_time":
		found, err := admin.ListOffsetsAfterMilli(ctx, asked.TimestampMs, asked.Topic)
		if err != nil {
			return nil, err
		}
		listed, _ := found.Lookup(asked.Topic, asked.Partition)
		if listed.Timestamp < 0 { // kadm answers with the end offset where no record is that young
			return nil, listed.Err
		}
		return listed.Offset, listed.Err
	case "bounds":
		starts, err := admin.ListStartOffsets(ctx, asked.Topic)
		if err != nil {
			return nil, err
		}
		ends, err := admin.ListEndOffsets(ctx, asked.Topic)
		start, _ := starts.Lookup(asked.Topic, asked.Partition)
		end, _ := ends.Lookup(asked.Topic, asked.Partition)
		return []int64{start.Offset, end.Offset}, errors.Join(err, start.Err, end.Err)
	case "partition_count":
		topics, err := admin.ListTopics(ctx, asked.Topic)
		return len(topics[asked.Topic].Partitions), err
	case "create_topic":
		_, err := admin.CreateTopic(ctx, asked.Partitions, asked.Replicas, asked.Configs, asked.Topic)
		return nil, err
	case "delete_topic":
		_, err := admin.DeleteTopic(ctx, asked.Topic)
		return nil, err
	case "topics":
		topics, err := admin.ListTopics(ctx)
		return topics.Names(), err
	case "create_partitions":
		changed, err := admin.UpdatePartitions(ctx, asked.Total, asked.Topic)
		return nil, errors.Join(err, changed.Error())
	case "delete_records":
		var before kadm.Offsets
		before.AddOffset(asked.Topic, asked.Partition, asked.Before, -1)
		deleted, err := admin.DeleteRecords(ctx, before)
		if err != nil {
			return nil, err
		}
		one, _ := deleted.Lookup(asked.Topic, asked.Partition)
		return one.LowWatermark, one.Err
	case "configs":
		described, err := admin.DescribeTopicConfigs(ctx, asked.Topic)
		if err != nil {
			return nil, err
		}
		configs := map[string]*string{}
		for _, config := range described[0].Configs {
			configs[config.Key] = config.Value
		}
		return configs, described[0].Err
	case "alter_config":
		change := kadm.AlterConfig{Op: kadm.SetConfig, Name: asked.Name, Value: &asked.Value}
		altered, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{change}, asked.Topic)
		if err != nil {
			return nil, err
		}
		return nil, altered[0].Err
	}
	return nil, fmt.Errorf("unknown call %q", asked.Call)
}

func (d *driver) produce(ctx context.Context, asked call) (any, error) {
	codecs := map[string]kgo.CompressionCodec{
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	}
	acks := map[int]kgo.Acks{0: kgo.NoAck(), 1: kgo.LeaderAck(), -1: kgo.AllISRAcks()}
	options := []kgo.Opt{
		kgo.AllowAutoTopicCreation(),
		kgo.ProducerBatchCompression(codecs[asked.Compression]),
		kgo.ProducerBatchMaxBytes(asked.RequestBytesMax),
		kgo.RequiredAcks(acks[asked.Acks]),
	}
	if asked.Messages[0].Partition != nil {
		options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	if !asked.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := d.client(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := make([]*kgo.Record, len(asked.Messages))
	for index, given := range asked.Messages {
		record := &kgo.Record{Topic: asked.Topic, Key: given.Key, Value: given.Value}
		for _, one := range given.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: one.Name, Value: one.Value})
		}
		if given.TimestampMs != nil {
			record.Timestamp = time.UnixMilli(*given.TimestampMs)
		}
		if given.Partition != nil {
			record.Partition = *given.Partition
		}
		records[index] = record
	}
	places := []placed{}
	for _, produced := range client.ProduceSync(ctx, records...) {
		if produced.Err != nil {
			return nil, produced.Err
		}
		offset := produced.Record.Offset
		if asked.Acks == 0 {
			offset = -1 // nobody told
		}
		places = append(places, placed{produced.Record.Partition, offset})
	}
	return places, nil
}

func (d *driver) consume(ctx context.Context, asked call) (any, error) {
	from := map[string]map[int32]kgo.Offset{asked.Topic: {asked.Partition: kgo.NewOffset().At(asked.Offset)}}
	client, err := d.client(
		kgo.ConsumePartitions(from),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxWait(200*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := []stored{}
	for len(records) < asked.Count {
		fetches := client.PollFetches(ctx)
		if failed := fetches.Errors(); len(failed) > 0 {
			return nil, failed[0].Err
		}
		for _, record := range fetches.Records() {
			if len(records) == asked.Count {
				break
			}
			headers := []header{}
			for _, one := range record.Headers {
				headers = append(headers, header{one.Key, one.Value})
			}
			at := record.Timestamp.UnixMilli()
			records = append(records, stored{record.Partition, record.Offset, at, record.Key, record.Value, headers})
		}
	}
	return records, nil
}

func (d *driver) copy(ctx context.Context, asked call) error {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(d.bootstrap),
		kgo.TransactionalID(asked.TransactionalID),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumerGroup(asked.Group),
		kgo.ConsumeTopics(asked.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.FetchMaxWait(50*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.Begin(); err != nil {
		return err
	}
	for copied := 0; copied < asked.Count; {
		fetches := session.PollRecords(ctx, asked.Count-copied)
		if failed := fetches.Errors(); len(failed) > 0 {
			return failed[0].Err
		}
		for _, record := range fetches.Records() {
			if err := session.ProduceSync(ctx, &kgo.Record{Topic: asked.Output, Value: record.Value}).FirstErr(); err != nil {
				return err
			}
			copied++
		}
	}
	committed, err := session.End(ctx, kgo.TransactionEndTry(asked.Commits))
	if err == nil && committed != asked.Commits {
		return errors.New("the session ended otherwise than it was told")
	}
	return err
}

func (d *driver) join(asked call) (any, error) {
	client, err := d.client(
		kgo.ConsumerGroup(asked.Group),
		kgo.ConsumeTopics(asked.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.FetchMaxWait(50*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	d.members = append(d.members, client)
	return len(d.members) - 1, nil
}

func (d *driver) poll(ctx context.Context, asked call) (any, error) {
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	fetches := d.members[asked.Member].PollFetches(soon)
	for _, failed := range fetches.Errors() {
		if !errors.Is(failed.Err, context.DeadlineExceeded) {
			return nil, failed.Err
		}
	}
	places := []placed{}
	for _, record := range fetches.Records() {
		places = append(places, placed{record.Partition, record.Offset})
	}
	return places, nil
}

func (d *driver) client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(d.bootstrap))...)
}
